# syntax=docker/dockerfile:1
ARG VERSION=3.12
FROM python:${VERSION}-slim AS build

ENV PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1
LABEL org.opencontainers.image.title="orders" maintainer="shop"

WORKDIR /app
COPY pyproject.toml uv.lock ./
RUN --mount=type=cache,target=/root/.cache \
    apt-get update && apt-get install -y --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*
RUN <<EOF
set -e
python -m venv /venv
/venv/bin/pip install .
EOF

FROM python:${VERSION}-slim
COPY --from=build --chown=app:app /venv /venv
ADD https://example.com/data.tar.gz /data/
USER app
EXPOSE 8000/tcp
VOLUME ["/data"]
HEALTHCHECK --interval=30s --timeout=3s CMD curl -f http://localhost:8000/ || exit 1
ENTRYPOINT ["/venv/bin/python", "-m", "orders"]
CMD ["--port", "8000"]
