import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { assert, beforeAll, describe, it } from "vitest"
import { links } from "./markdown.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const read = (path: string) => readFileSync(join(root, path), "utf8")

const packages = readdirSync(join(root, "packages")).filter((name) =>
  existsSync(join(root, "packages", name, "src/index.ts"))
)

/** The class of a tagged error. Its identifier ends with the module, if that is another name, and the tag. */
interface ErrorClass {
  readonly _tag: string
  readonly identifier: string
}

const isErrorClass = (value: unknown): value is ErrorClass =>
  typeof value === "function" && value.prototype instanceof Error && "_tag" in value && "identifier" in value

/** The errors of tool calls are many, and have a folder of their own. */
const pageOf = ({ _tag, identifier }: ErrorClass) =>
  identifier.endsWith(`/ToolError/${_tag}`) ? `ToolError/${_tag}.md` : `${_tag}.md`

const isListed = (page: string, within: string) =>
  links(read(within)).some((link) => join(within, "..", link.split("#")[0] ?? "") === `docs/errors/${page}`)

describe("errors", () => {
  let classes: ReadonlyArray<ErrorClass> = []

  beforeAll(async () => {
    const indexes = packages.map((name): Promise<Record<string, Record<string, unknown>>> =>
      import(pathToFileURL(join(root, "packages", name, "src/index.ts")).href)
    )
    const modules = (await Promise.all(indexes)).flatMap((index) => Object.values(index))
    classes = [...new Set(modules.flatMap((module) => Object.values(module)).filter(isErrorClass))]
  })

  it("are found in the packages", () => {
    const tags = classes.map(({ _tag }) => _tag)
    assert.includeMembers(tags, ["AdapterError", "Timeout", "NotSaved", "Violation"])
    assert.strictEqual(tags.filter((tag) => tag === "NotFound").length, 2)
  })

  it("have a page each, and no page is of none of them", () => {
    const pages = readdirSync(join(root, "docs/errors"), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".md") && file !== "ToolError.md")
    assert.deepStrictEqual(pages.sort(), classes.map(pageOf).sort())

    const untitled = classes.filter((error) => !read(`docs/errors/${pageOf(error)}`).startsWith(`# ${error._tag}\n`))
    assert.deepStrictEqual(untitled.map(pageOf), [])
  })

  it("are listed in the contents, and those of tool calls in their overview", () => {
    const pages = classes.map(pageOf)
    assert.deepStrictEqual(pages.filter((page) => !isListed(page, "docs/README.md")), [])

    const ofCalls = pages.filter((page) => page.startsWith("ToolError/"))
    assert.deepStrictEqual(ofCalls.filter((page) => !isListed(page, "docs/errors/ToolError.md")), [])
  })

  const reasons: ReadonlyArray<readonly [page: string, source: string]> = [
    ["AdapterError", "AdapterError"],
    ["SessionError", "SessionError"],
    ["StoreError", "StoreError"],
    ["ValidationError", "ValidationError"],
    ["JournalError", "ToolJournal"],
    ["LeaseLost", "SessionLease"]
  ]

  for (const [page, source] of reasons) {
    it(`named ${page} have a row for every reason`, () => {
      const literal = /(?:Reason =|reason:) Schema\.Literal\(([^)]*)\)/.exec(read(`packages/core/src/${source}.ts`))
      const known = [...(literal?.[1] ?? "").matchAll(/"(\w+)"/g)].map(([, word]) => word)
      const rows = read(`docs/errors/${page}.md`).split("\n").filter((line) =>
        line.startsWith("| `") && !line.startsWith("| `reason`")
      )
      const told = rows.flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, word]) => word))

      assert.isAtLeast(known.length, 3)
      assert.deepStrictEqual(told.sort(), known.sort())
    })
  }
})
