"""Links in docs/ are written for a reader of the repository. The site has its own way to the other language, and no
sources: a link to one becomes the name of the file."""

import logging
import re
from pathlib import Path
from typing import Any

# The line below a page's title that leads to the same page in the other language.
_OTHER_LANGUAGE = re.compile(r"^\[(?:中文|English)\]\([\w.-]+\.md\)\n", re.MULTILINE)
_NO_PAGES = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>\n'
_OUTSIDE = re.compile(r"\[([^]]*)\]\(\.\./[^)]*\)")


def slug(heading: str, separator: str) -> str:
    """As in the repository, where links were written to fit it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)


def on_config(config: Any) -> None:
    config.mdx_configs["toc"]["slugify"] = slug
    logging.getLogger("jieba").setLevel(logging.WARNING)  # which tells how it loads its dictionary


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    text = _OTHER_LANGUAGE.sub("", markdown, count=1)
    if page.file.src_uri.endswith(".zh-CN.md"):
        # What a page leaves to its own English one is there, and not in itself, where the site would look for it.
        name = page.file.src_uri.removesuffix(".zh-CN.md")
        text = re.sub(rf"\[([^]]*)\]\({name}\.md(#[^)]*)\)", rf'<a href="../{name}.html\2">\1</a>', text)
    text = _OUTSIDE.sub(lambda link: link[1] if "`" in link[1] else f"*{link[1]}*", text)
    return text.replace(".zh-CN.md", ".md").replace(".zh-CN.svg", ".svg")


def on_post_build(config: Any) -> None:
    """The theme asks for a list of all pages, in each language, which a site without an address cannot give."""
    for folder in (Path(config.site_dir), Path(config.site_dir) / "zh-CN"):
        folder.mkdir(parents=True, exist_ok=True)
        folder.joinpath("sitemap.xml").write_text(_NO_PAGES, encoding="utf-8")
        folder.joinpath("sitemap.xml.gz").unlink(missing_ok=True)
