import { readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { parse } from "./markdown.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const read = (path: string) => readFileSync(join(root, path), "utf8")

/** An example that a page quotes: a line that ends with a link to it and a colon, the file, and what it prints. */
interface Quote {
  readonly where: string
  readonly example: string
  readonly code: string
  readonly output: string | undefined
}

const quotesOf = (page: string): Array<Quote> => {
  const text = read(page)
  const lines = text.split("\n")
  // The last line of text above a block.
  const lead = (line: number) => lines.slice(0, line - 2).filter((above) => above.trim() !== "").at(-1) ?? ""
  const { blocks } = parse(text)
  return blocks.flatMap(({ code, info, line }, index) => {
    const [, file] = /\]\([^)]*examples\/src\/([^)]+\.ts)\):$/.exec(lead(line)) ?? []
    if (info !== "ts" || file === undefined) return []
    const next = blocks[index + 1]
    const output = next !== undefined && lead(next.line) === "It prints:" ? next.code : undefined
    return [{ where: `${page}:${line}`, example: basename(file, ".ts"), code, output }]
  })
}

const quotes = readdirSync(join(root, "docs/guide")).flatMap((file) => quotesOf(`docs/guide/${file}`))

describe("quotes", () => {
  for (const { code, example, output, where } of quotes) {
    it(`of ${where} are ${example}.ts and what it prints`, () => {
      assert.strictEqual(code, read(`examples/src/${example}.ts`))
      assert.strictEqual(output, read(`examples/expected/${example}.txt`))
    })
  }

  it("hold each example of the loop, once", () => {
    const examples = readdirSync(join(root, "examples/src"))
      .filter((file) => /^\d\d-/.test(file))
      .map((file) => basename(file, ".ts"))
      // The first ones show a batch, and the pages about it have code of their own.
      .filter((name) => Number(name.slice(0, 2)) > 5)

    assert.deepStrictEqual(quotes.map(({ example }) => example).sort(), examples.sort())
  })
})
