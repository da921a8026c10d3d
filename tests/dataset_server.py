"""Made-up files in the formats of the data sets, and a host that serves them well or badly."""

from __future__ import annotations

import io
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from patience import patience

Answer = Callable[[BaseHTTPRequestHandler], None]


def whole(content: bytes) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    return answer


def truncated(content: bytes) -> Answer:
    """Promise all and send half."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content[: len(content) // 2])

    return answer


def after(event_or_barrier: threading.Event | threading.Barrier, then: Answer) -> Answer:
    """Answer only when something else has happened."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        event_or_barrier.wait(patience(60))
        then(request)

    return answer


@contextmanager
def serve(answers: dict[str, Answer]) -> Iterator[str]:
    """Give the address of a host that knows these paths only."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path in answers:
                answers[self.path](self)
            else:
                self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def zip_of(members: dict[str, bytes | str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # its date is fixed
    return buffer.getvalue()


def news_archive(documents: dict[str, str]) -> bytes:
    """Pack documents, by their path, as 20 Newsgroups is packed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in documents.items():
            content = text.encode("latin-1")
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def coil_archive(images: dict[str, np.ndarray]) -> bytes:
    from PIL import Image

    members: dict[str, bytes | str] = {}
    for name, pixels in images.items():
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, format="png")
        members[f"coil-100/{name}"] = buffer.getvalue()
    return zip_of(members)


class Packer:
    """The bits of a .Z file: groups of eight codes of one width."""

    def __init__(self, limit: int) -> None:
        self.content, self.group, self.width, self.limit = bytearray([0x1F, 0x9D, 0x80 | limit]), [], 9, limit

    def put(self, code: int) -> None:
        self.group.append(code)
        if len(self.group) == 8:
            self.flush(self.width)

    def flush(self, n_bytes: int | None = None) -> None:
        bits = sum(code << (position * self.width) for position, code in enumerate(self.group))
        if self.group:
            self.content += bits.to_bytes(n_bytes or -(-len(self.group) * self.width // 8), "little")
        self.group = []

    def change(self, width: int) -> None:
        self.flush(self.width)  # the rest of the group is padding
        self.width = width


def compress(content: bytes, limit: int = 16, clear_when_full: bool = False) -> bytes:
    """Pack bytes as the Unix program compress does."""
    packer = Packer(limit)
    known = {bytes([value]): value for value in range(256)}
    free, present = 257, b""
    for value in content:
        longer = present + bytes([value])
        if longer in known:
            present = longer
            continue
        packer.put(known[present])
        if free < 1 << limit:
            known[longer] = free
            free += 1
            # The reader adds its string one code later, so it widens one code later too.
            if free - 1 > (1 << packer.width) - 1 and packer.width < limit:
                packer.change(packer.width + 1)
        elif clear_when_full:
            packer.put(256)
            packer.change(9)
            known = {bytes([value]): value for value in range(256)}
            free = 257
        present = bytes([value])
    if present:
        packer.put(known[present])
    packer.flush()
    return bytes(packer.content)
