"""Links in docs/ are written for a reader of the repository. The site has its own way to the other language, and no
sources: a link to one becomes the name of the file."""

import re
from typing import Any

# The line below a page's title that leads to the same page in the other language.
_OTHER_LANGUAGE = re.compile(r"^\[(?:中文|English)\]\([\w.-]+\.md\)\n", re.MULTILINE)
_OUTSIDE = re.compile(r"\[([^]]*)\]\(\.\./[^)]*\)")


def slug(heading: str, separator: str) -> str:
    """As in the repository, where links were written to fit it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)


def on_config(config: Any) -> None:
    config.mdx_configs["toc"]["slugify"] = slug


def on_page_markdown(markdown: str, **_: Any) -> str:
    text = _OTHER_LANGUAGE.sub("", markdown, count=1)
    text = _OUTSIDE.sub(lambda link: link[1] if "`" in link[1] else f"*{link[1]}*", text)
    return text.replace(".zh-CN.md", ".md")
