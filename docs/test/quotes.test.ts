import { existsSync, readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { lead, parse } from "./markdown.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const read = (path: string) => readFileSync(join(root, path), "utf8")

/**
 * An example that a page quotes: a line that ends with a link to it and a colon, the file, and what it prints, also when
 * it is run again.
 */
interface Quote {
  readonly where: string
  readonly example: string
  readonly code: string
  readonly output: string | undefined
  readonly again: string | undefined
}

const quotesOf = (page: string): Array<Quote> => {
  const text = read(page)
  const { blocks } = parse(text)
  return blocks.flatMap(({ code, info, line }, index) => {
    const [, file] = /\]\([^)]*examples\/src\/([^)]+\.ts)\):$/.exec(lead(text, line)) ?? []
    if (info !== "ts" || file === undefined) return []
    const told = (after: number, words: string) => {
      const block = blocks[index + after]
      return block !== undefined && lead(text, block.line) === words ? block.code : undefined
    }
    return [{
      where: `${page}:${line}`,
      example: basename(file, ".ts"),
      code,
      output: told(1, "It prints:"),
      again: told(2, "Run again, it prints:")
    }]
  })
}

const quotes = readdirSync(join(root, "docs/guide")).flatMap((file) => quotesOf(`docs/guide/${file}`))

describe("quotes", () => {
  for (const { again, code, example, output, where } of quotes) {
    it(`of ${where} are ${example}.ts and what it prints`, () => {
      const second = `examples/expected/${example}.again.txt`
      assert.strictEqual(code, read(`examples/src/${example}.ts`))
      assert.strictEqual(output, read(`examples/expected/${example}.txt`))
      assert.strictEqual(again, existsSync(join(root, second)) ? read(second) : undefined)
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
