"""Commands and their output as an animated SVG: each command is typed, its output appears, the next scene follows."""

import os
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

from rich.style import Style
from rich.text import Text

COLUMNS, ROWS = 100, 20
WIDTH, LINE = 7.8, 17  # of a character, of a line, in pixels
BACKGROUND, TEXT = "#1c2128", "#d1d7e0"
TYPED, READ = 0.02, 4.5  # seconds for a character, and for a scene after its command
COLOURS = {1: "#f47067", 2: "#8ddb8c", 3: "#daaa3f", 4: "#6cb6ff", 5: "#dcbdfb", 6: "#76e3ea"}  # by their ANSI number


def run(command: str, folder: Path) -> list[Text]:
    """Return the lines that a command printed on a terminal of `COLUMNS` columns, styled; raise if it failed."""
    environment = {**os.environ, "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True, encoding="utf-8",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)  # fmt: skip
    lines = [Text.from_ansi(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line.plain.strip()][: ROWS - 3]


def animated(scenes: list[tuple[str, list[Text]]]) -> str:
    """Return an SVG that shows one scene after the other, for ever: a command, and the lines that it printed."""
    lengths = [TYPED * len(command) + READ for command, _ in scenes]
    total, width, height = sum(lengths), COLUMNS * WIDTH + 32, ROWS * LINE + 28
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
        f'height="{height}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">',
        f"<title>{escape('; '.join(command for command, _ in scenes))}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
    ]
    start = 0.0
    for number, ((command, lines), length) in enumerate(zip(scenes, lengths, strict=True)):
        typed, end = start + TYPED * len(command), start + length
        parts.append(f'<g opacity="{int(number == 0)}">{_shown(start, end, total)}')
        parts.append(
            f'<clipPath id="c{number}"><rect x="0" y="0" height="{2 * LINE + 14}" width="{width:.0f}">'
            f'<animate attributeName="width" dur="{total:.2f}s" repeatCount="indefinite" '
            f'values="30;30;{width:.0f};{width:.0f}" keyTimes="0;{start / total:.4f};{typed / total:.4f};1"/>'
            "</rect></clipPath>"
        )
        parts.append(f'<g clip-path="url(#c{number})">' + _line(_command(command), 0) + "</g>")
        body = "".join(_line(line, 2 + row) for row, line in enumerate(lines))
        parts.append(f'<g opacity="1">{_shown(typed, end, total)}{body}</g></g>')
        start = end
    return "\n".join([*parts, "</svg>\n"])


def _shown(start: float, end: float, total: float) -> str:
    """Return what makes the enclosing group visible from `start` to `end`, of `total` seconds."""
    times = [0.0, start / total, end / total, 1.0]
    values = "1;1;0;0" if start == 0 else "0;1;0;0"
    keys = ";".join(f"{time:.4f}" for time in times)
    return (
        f'<animate attributeName="opacity" calcMode="discrete" dur="{total:.2f}s" repeatCount="indefinite" '
        f'values="{values}" keyTimes="{keys}"/>'
    )


def _command(command: str) -> Text:
    return Text.from_ansi(f"\x1b[32m$\x1b[0m \x1b[1m{command}\x1b[0m")


def _line(line: Text, row: int) -> str:
    """Return a line of text at a row; spaces keep their width."""
    spans, at = [], 16.0
    for segment in line.divide(sorted({s.start for s in line.spans} | {s.end for s in line.spans})):
        styles = (span.style for span in segment.spans if isinstance(span.style, Style))
        style = Style.combine([Style.null(), *styles])
        colour = COLOURS.get(style.color.number, TEXT) if style.color else TEXT
        weight = ' font-weight="bold"' if style.bold else ""
        faint = ' opacity="0.6"' if style.dim else ""
        if segment.plain:
            length = len(segment.plain) * WIDTH
            spans.append(
                f'<text x="{at:.1f}" y="{24 + row * LINE}" fill="{colour}"{weight}{faint} xml:space="preserve" '
                f'textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs">{escape(segment.plain)}</text>'
            )
        at += len(segment.plain) * WIDTH
    return "".join(spans)
