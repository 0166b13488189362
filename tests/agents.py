"""Calling tools of a server in this process, with the official client."""

import asyncio

from mcp import Client


class Agent:
    """Calls the tools of a server; they are listed first, so that answers are held to their schemas."""

    def __init__(self, server):
        self.server = server

    def many(self, *calls):
        """Make calls at once."""

        async def converse():
            async with Client(self.server) as client:
                await client.list_tools()
                return await asyncio.gather(*(client.call_tool(*call) for call in calls))

        return asyncio.run(converse())

    def __call__(self, tool, **arguments):
        """Return what a call answers: its values and its text."""
        (result,) = self.many((tool, arguments))
        (content,) = result.content
        assert not result.is_error, content.text
        return result.structured_content, content.text

    def refused(self, tool, **arguments):
        """Return what is said of a call that cannot be answered."""
        (result,) = self.many((tool, arguments))
        (content,) = result.content
        assert result.is_error
        assert result.structured_content is None
        return content.text

    def tools(self):
        async def converse():
            async with Client(self.server) as client:
                return (await client.list_tools()).tools

        return asyncio.run(converse())
