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

/** What an example prints, if it prints anything. */
const printed = (name: string) => {
  const file = `examples/expected/${name}.txt`
  return existsSync(join(root, file)) ? read(file) : undefined
}

describe("quotes", () => {
  for (const { again, code, example, output, where } of quotes) {
    it(`of ${where} are ${example}.ts and what it prints`, () => {
      assert.strictEqual(code, read(`examples/src/${example}.ts`))
      assert.strictEqual(output, printed(example))
      assert.strictEqual(again, printed(`${example}.again`))
    })
  }

  it("are of each example once at most", () => {
    const examples = quotes.map(({ example }) => example)
    assert.deepStrictEqual(examples.filter((example, index) => examples.indexOf(example) !== index), [])
  })

  it("stand beside a table that has every example, in order, under its number", () => {
    const programs = readdirSync(join(root, "examples/src")).filter((file) => !file.endsWith(".test.ts")).sort()
    const rows = read("docs/README.md").matchAll(/^\| \[([^\]]+)\]\(..\/examples\/src\/([^)]+)\) +\| \S/gm)
    assert.deepStrictEqual([...rows].map(([, name, file]) => [name, file]), programs.map((file) => [file, file]))
    assert.deepStrictEqual(programs.map((file) => Number(file.slice(0, 2))), programs.map((_, index) => index + 1))
  })
})
