"""The HTTP API, MCP tools, gRPC services and page of ``serve``, and health and metrics beside a session.

In: services that ``wiring`` made. Out: an application and the server that runs it. ``access`` tells who asks, ``asgi``
stands around every call, ``routes`` has the calls.
"""
