// The page has two parts, which are measured apart. Writing one leaves the other.
import { readFileSync, writeFileSync } from "node:fs"

const page = new URL("../../docs/performance.md", import.meta.url)

const head = `# Performance

Written by \`npm run bench -- --write\`; benchmarks/README.md says how it is measured.
`

const cut = "\n## Stores\n"

export const writePage = (parts) => {
  const old = readFileSync(page, "utf8")
  const at = old.indexOf(cut)
  const [oldLoop, oldStores] = at === -1 ? [old, ""] : [old.slice(0, at), old.slice(at)]
  const loop = parts.loop === undefined ? oldLoop : `${head}\n${parts.loop}\n`
  const stores = parts.stores === undefined ? oldStores : `\n${parts.stores}\n`
  writeFileSync(page, `${loop}${stores}`)
}
