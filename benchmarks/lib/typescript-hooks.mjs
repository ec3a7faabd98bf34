import { transformSync } from "amaro"
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"

export const load = async (url, context, nextLoad) => {
  if (!url.startsWith("file:") || !url.endsWith(".ts")) return nextLoad(url, context)
  const source = await readFile(fileURLToPath(url), "utf8")
  return { format: "module", shortCircuit: true, source: transformSync(source, { mode: "strip-only" }).code }
}
