import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { links } from "./markdown.ts"

const docs = fileURLToPath(new URL("..", import.meta.url))
const read = (page: string) => readFileSync(join(docs, page), "utf8")

const guide = readdirSync(join(docs, "guide")).sort()

/** The title of a page as it stands in the middle of a sentence. */
const titleOf = (page: string) => /^# (.)(.*)$/m.exec(read(page))?.slice(1) ?? []

describe("the guide", () => {
  it("is numbered from 0, and listed in the contents in order and under its titles", () => {
    assert.deepStrictEqual(guide.map((page) => Number(page.slice(0, 2))), guide.map((_, index) => index))

    const rows = [...read("README.md").matchAll(/^(\d+)\. \[([^\]]+)\]\(guide\/([^)]+)\): \S/gm)]
    assert.deepStrictEqual(
      rows.map(([, number, title, page]) => [Number(number), title, page]),
      guide.map((page, index) => [index, titleOf(`guide/${page}`).join(""), page])
    )
  })

  it("leads from page to page, and back to the contents", () => {
    const last = (page: string) => read(`guide/${page}`).trimEnd().split("\n").at(-1)
    const next = guide.slice(1).map((page) => {
      const [first = "", rest = ""] = titleOf(`guide/${page}`)
      return `Next: [${first.toLowerCase()}${rest}](${page}).`
    })
    assert.deepStrictEqual(guide.map(last), [...next, "Back to the [contents](../README.md)."])
  })
})

describe("the contents", () => {
  it("lead to every page", () => {
    const pages = readdirSync(docs, { recursive: true, encoding: "utf8" })
      // The reference has contents of its own.
      .filter((file) => file.endsWith(".md") && file !== "README.md" && !/^reference\/./.test(file))
    const listed = new Set(links(read("README.md")).map((link) => link.split("#")[0]))
    assert.deepStrictEqual(pages.filter((page) => !listed.has(page)), [])
  })
})
