"""A disk that is full or read-only: a file system in memory where we may mount one, else limits."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Disk:
    """A folder on a file system of its own, if ``mounted``."""

    folder: Path
    mounted: bool
    largest_file: int

    @property
    def limits(self) -> dict[str, Any]:
        """Return options for a command that meets the end of a disk which is not there."""
        return {} if self.mounted else {"preexec_fn": self._limit_files}

    def _limit_files(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.largest_file, resource.RLIM_INFINITY))

    def make_room(self) -> None:
        """Let it hold all that a reproduction writes."""
        if self.mounted:
            self._remount("size=200m")

    @contextmanager
    def filled(self) -> Iterator[None]:
        """Leave no room at all inside."""
        filling = self.folder / "filling"
        if self.mounted:
            with suppress(OSError), filling.open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
        yield
        filling.unlink(missing_ok=True)

    def forbid_writing(self) -> None:
        """Refuse every change: a mounted one to all, another one to all but root, who could have mounted."""
        if self.mounted:
            self._remount("ro")
        else:
            self.folder.chmod(0o555)

    def _remount(self, option: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{option}", str(self.folder)], check=True)


@contextmanager
def small_disk(folder: Path, size: str = "10m", largest_file: int = 400) -> Iterator[Disk]:
    """Give a disk of this size; if it cannot be mounted, no files larger than ``largest_file`` bytes."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True).returncode == 0
    if not mounted:
        print("No file system can be mounted here: RLIMIT_FSIZE and chmod stand in for it.", flush=True)
    try:
        yield Disk(folder, mounted, largest_file)
    finally:
        if mounted:
            # Lazily: a process that was killed a moment ago may still have a file open.
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        else:
            folder.chmod(0o755)
