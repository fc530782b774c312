"""Every name of uvicorn's insides that we use stands in one file. An unknown version is judged by this list."""

import ast
import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

import seckill.web.connections.uvicorn_adapter as adapter

PACKAGE = Path(adapter.__file__).parents[2]
ADAPTER = Path(adapter.__file__)
USED: dict[type, set[str]] = {
    HttpToolsProtocol: {
        *("app", "client", "cycle", "flow", "headers", "loop", "parser", "pipeline", "server_state", "shutdown"),
        *("timeout_keep_alive", "transport", "url", "_should_upgrade", "_start_asgi_task"),
        *("handle_websocket_upgrade", "on_response_complete"),
        *("on_message_begin", "on_headers_complete", "on_body", "on_message_complete"),
    },
    RequestResponseCycle: {
        *("disconnected", "keep_alive", "message_event", "more_body"),
        *("response_complete", "response_started", "scope"),
    },
    FlowControl: {"read_paused", "resume_reading", "write_paused"},
    ServerState: {"connections", "default_headers", "total_requests"},
    WebSocketsSansIOProtocol: {
        *("close_sent", "close_timer", "conn", "curr_msg_data_type", "frames", "logger", "loop", "queue"),
        *("read_paused", "transport", "handle_cont", "handle_parser_exception", "send_receive_event_to_app"),
        "stop_keepalive",
    },
    uvicorn.Server: {
        *("capture_signals", "config", "lifespan", "on_tick", "server_state", "servers", "should_exit", "shutdown"),
        *("started", "startup"),
    },
}
# Those who build on the adapter may use these although they are not its own: an asyncio protocol's wire and loop, the
# parser's calls, and what the server calls when it stops.
PASSED_ON = {"loop", "transport", "shutdown"}
PASSED_ON |= {"on_message_begin", "on_headers_complete", "on_body", "on_message_complete"}


def names_of(kind: type) -> set[str]:
    """Its methods, and what they set on themselves."""
    tree = ast.parse(inspect.getsource(kind))
    methods = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    stored = {node.attr for node in attributes(tree) if isinstance(node.ctx, ast.Store)}
    return methods | stored


def attributes(tree: ast.AST) -> Iterator[ast.Attribute]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))


def missing(kind: type, names: set[str]) -> list[str]:
    return [
        f"uvicorn {uvicorn.__version__} has no {kind.__name__}.{name}, which {ADAPTER.name} uses."
        for name in sorted(names - names_of(kind))
    ]


@pytest.mark.parametrize("kind", USED, ids=lambda kind: kind.__name__)
def test_this_version_has_every_name_that_is_used(kind: type) -> None:
    assert missing(kind, USED[kind]) == []


def test_a_name_that_is_gone_is_said_in_one_sentence() -> None:
    assert missing(FlowControl, {"read_paused", "taken_away"}) == [
        f"uvicorn {uvicorn.__version__} has no FlowControl.taken_away, which uvicorn_adapter.py uses."
    ]


def own_names() -> set[str]:
    """Returns the names that the adapter offers and that uvicorn does not have there."""
    kinds = (adapter.HttpConnection, adapter.WebSocketConnection, adapter.HttpServer)
    return {name for kind in kinds for name in vars(kind).keys() - names_of(kind.__bases__[0])}


def test_the_list_has_every_name_that_the_adapter_uses() -> None:
    theirs = {name for kind in USED for name in names_of(kind) if not name.startswith("__")}
    listed = {name for names in USED.values() for name in names}
    used = {node.attr for node in attributes(ast.parse(ADAPTER.read_text()))}
    assert used & theirs - listed - own_names() - set(dir(asyncio.Protocol)) == set()


def test_nothing_else_touches_uvicorns_insides() -> None:
    """Nothing but the adapter imports them, and who builds on the adapter uses the adapter's names."""
    insides = {name for names in USED.values() for name in names} - PASSED_ON - own_names()
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        if path == ADAPTER or "uvicorn" not in text:
            continue
        tree = ast.parse(text)
        imports = (node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
        wrong += [f"{path.name} imports {module}" for module in imports if module.split(".")[0] == "uvicorn"]
        for node in attributes(tree):
            whose = ast.unparse(node.value)
            if whose == "uvicorn" and node.attr not in ("Config", "Server"):
                wrong.append(f"{path.name} uses uvicorn.{node.attr}")
            elif whose in ("self", "super()") and node.attr in insides:
                wrong.append(f"{path.name} uses {whose}.{node.attr}")
    assert wrong == []
