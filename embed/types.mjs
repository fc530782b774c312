// Makes seckill/web/static/seckill-api.d.ts from what describe.py says of the API:
//
//     python embed/describe.py | node embed/types.mjs [--check]

import { readFile, writeFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import openapiTS, { astToString } from "openapi-typescript";

const RESULT = new URL("../seckill/web/static/seckill-api.d.ts", import.meta.url);

const { document, digest } = JSON.parse(await text(process.stdin));
document.info.version = "";
const types = astToString(await openapiTS(document));
const result = `// The types of the API, made from its OpenAPI document by make embed.\n// ${digest}\n\n${types}`;

if (process.argv.includes("--check")) {
  if ((await readFile(RESULT, "utf8")) !== result) throw new Error("seckill/web/static/seckill-api.d.ts is not current: run make embed.");
} else {
  await writeFile(RESULT, result);
}
