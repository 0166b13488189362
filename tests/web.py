"""Asking an application over HTTP in this process."""

import asyncio

import httpx

API = "/api/v1/runs"


class Client:
    """Asks an application in this process, one request or many at once."""

    def __init__(self, app, **headers):
        self.app, self.headers = app, headers

    def many(self, *requests):
        async def ask():
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost", headers=self.headers
            ) as client:
                return await asyncio.gather(*(client.request(*args, **kw) for args, kw in requests))

        return asyncio.run(ask())

    def __call__(self, method, url, **kw):
        return self.many(((method, url), kw))[0]

    def get(self, url, **params):
        return self("GET", url, params=params or None)

    def post(self, url, body):
        return self("POST", url, json=body)
