"""Makes pictures of pages small: 256 colours are enough, and a palette saves two thirds."""

import base64
import struct
import zlib

from playwright.async_api import Page

# Reads a PNG; returns its size, its 256 commonest colours, and each point as the nearest of them.
_POINTS = """async (png) => {
  const image = new Image();
  image.src = 'data:image/png;base64,' + png;
  await image.decode();
  const {width, height} = image;
  const canvas = new OffscreenCanvas(width, height).getContext('2d');
  canvas.drawImage(image, 0, 0);
  const points = new Uint32Array(canvas.getImageData(0, 0, width, height).data.buffer);
  const counts = new Map();
  for (const point of points) counts.set(point, (counts.get(point) || 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([colour]) => colour);
  const parts = (colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
  const known = palette.map(parts);
  const places = new Map();
  for (const colour of counts.keys()) {
    const [r, g, b] = parts(colour);
    let best = 0, least = Infinity;
    known.forEach(([x, y, z], place) => {
      const far = (r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2;
      if (far < least) { least = far; best = place; }
    });
    places.set(colour, best);
  }
  let indices = '';
  for (const point of points) indices += String.fromCharCode(places.get(point));
  return {width, height, palette: known.flat(), indices: btoa(indices)};
}"""


async def small_png(page: Page, picture: bytes) -> bytes:
    """Return a PNG with a palette, which looks the same; `page` does the reading."""
    read = await page.evaluate(_POINTS, base64.b64encode(picture).decode())
    width, height = read["width"], read["height"]
    points = base64.b64decode(read["indices"])
    # Each row begins with the number of its filter; none suits a palette best.
    rows = b"".join(b"\0" + points[at : at + width] for at in range(0, width * height, width))
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", bytes(read["palette"])),
            _chunk(b"IDAT", zlib.compress(rows, 9)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
