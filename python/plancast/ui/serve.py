"""Serves the page on this machine alone."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Any

from plancast.errors import InputError

HOST = "127.0.0.1"


def serve(app: Any, port: int, announce: Callable[[str], object]) -> None:
    """Serves until it is stopped; says its address once it answers. Port 0: any that is free."""
    from werkzeug.serving import make_server

    check_port(port)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # not a line for every request
    server = make_server(HOST, port, app.server, threaded=True)
    announce(f"http://{HOST}:{server.server_port}/")
    server.serve_forever()


def check_port(port: int) -> None:
    """Raises InputError for a port that somebody else has."""
    if not 0 <= port <= 65535:
        raise InputError(f"`--port {port}`: ports are 0 (any that is free) to 65535.")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise InputError(
                f"port {port} cannot be had: {error.strerror}. Choose another with `--port`, or "
                "`--port 0` for any that is free."
            ) from None
