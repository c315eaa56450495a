FROM python:3.11-slim
COPY dist/plancast-*-manylinux*.whl /tmp/
RUN pip install --no-cache-dir /tmp/plancast-*.whl "plotly>=6"
WORKDIR /work
ENTRYPOINT ["plancast"]
CMD ["--help"]
