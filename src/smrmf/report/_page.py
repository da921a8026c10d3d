"""The page itself: everything that is said, in one template, with styles, scripts and data inside."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

from smrmf.plot._style import color_of
from smrmf.report._map import SHAPES, shape_of

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ["map.js", "panel.js", "page.js"]


def jinja() -> Any:
    """Return the library of templates, or one sentence that says how to get it."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("Reports need jinja2: pip install 'smrmf[app]'.") from error
    return jinja2


def render(context: dict[str, Any], data: dict[str, Any]) -> str:
    """Return the page; everything of the context is escaped, and the data cannot end their element."""
    jinja2 = jinja()
    from markupsafe import Markup

    # StrictUndefined raises for a wrong name in the template, which would otherwise print nothing.
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["breakable"] = breakable
    environment.globals |= {"color_of": color_of, "shape_points": shape_points}
    style = _read("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(map(_read, SCRIPTS)) + "})();\n"
    page: str = environment.get_template("page.html.jinja").render(
        css=Markup(style),
        script=Markup(script),
        policy=policy(style, script),
        data=Markup(as_json(data)),
        **context,
    )
    return page


def breakable(name: str) -> Any:
    """Return a name, escaped, that a narrow column may break where its words end."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[_./-])(?=\w)", name))


def policy(style: str, script: str) -> str:
    """Return what the page may do: show these styles, run this script, draw images it holds, and no more."""
    hashes = [b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; img-src "
        "data:; base-uri 'none'; form-action 'none'"
    )


def as_json(data: Any) -> str:
    """Return data as JSON in which no letter can end a script or begin a tag."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    # All beyond ASCII, such as the two line ends that JSON allows and scripts do not, are escaped already.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def shape_points(cluster: int) -> str:
    """Return the corners of the shape of a cluster as SVG has them."""
    return " ".join(f"{x:g},{y:g}" for x, y in SHAPES[shape_of(cluster)])


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
