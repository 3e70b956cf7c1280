// Unpacks the browser of the npm package into DIRECTORY, for use at HOME: node unpack.mjs DIRECTORY HOME
import { createReadStream, createWriteStream, mkdirSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";
import { extract } from "tar-fs";

const [, , folder, home] = process.argv;
const packed = (name) => createReadStream(new URL(`node_modules/@sparticuz/chromium/bin/${name}.br`, import.meta.url));

mkdirSync(folder, { recursive: true });
await pipeline(packed("chromium"), createBrotliDecompress(), createWriteStream(resolve(folder, "chromium"), { mode: 0o755 }));
for (const name of ["al2023.tar", "fonts.tar", "swiftshader.tar"]) {
  await pipeline(packed(name), createBrotliDecompress(), extract(folder));
}
writeFileSync(
  resolve(folder, "fonts.conf"),
  `<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig><dir>${home}/fonts</dir><cachedir>${home}/fonts-cache</cachedir></fontconfig>\n`,
);
