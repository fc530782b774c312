"""Calls of other people's servers, against receivers on loopback."""

import asyncio
from urllib.error import HTTPError
from urllib.request import Request

import pytest

from seckill import http_call
from tests.patience import PATIENCE_S
from tests.receiver import Received, Receiver


def call(request: Request) -> tuple[int, bytes]:
    with http_call.open_url(request, PATIENCE_S) as answer:
        return answer.status, answer.read()


async def test_an_answer_is_returned() -> None:
    async with Receiver().running() as there:
        assert await asyncio.to_thread(call, Request(there.url(), b"{}")) == (200, b"ok")
        assert [each.body for each in there.got] == [b"{}"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(status: int) -> None:
    async def answer(_: Received) -> int:
        return status

    async with Receiver().running() as there, Receiver().running() as elsewhere:
        there.answer, there.reply_headers = answer, f"Location: {elsewhere.url()}\r\n"
        with pytest.raises(HTTPError) as refused:
            await asyncio.to_thread(call, Request(there.url(), b"{}"))
        with refused.value as error:
            assert error.code == status
        assert isinstance(error, http_call.FAILURES)
        assert elsewhere.connections == 0
