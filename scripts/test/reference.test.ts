import { assert, describe, it } from "vitest"
import { classOutline, declarationOf } from "../declaration.mjs"
import { parsePage } from "../docgen.mjs"
import { renderReference, sentence } from "../reference.mjs"

const fence = (code: string) => `\`\`\`ts\n${code}\n\`\`\``

// As docgen writes it, front matter and table of contents included.
const page = `***

title: Clock.ts
nav_order: 1
parent: Modules
---

## Clock overview

Tells the time. Never waits.

Added in v0.1.0

---

<h2 class="text-delta">Table of contents</h2>

- [constructors](#constructors)
  - [make](#make)

---

# constructors

## make

Makes a {@link Clock}, see {@link Zone.utc}.

**Signature**

${fence("export declare const make: (start: number) => Clock")}

**Example**

${fence("# no heading\nassert.ok(make(0))")}

Added in v0.1.0

# errors

## Stopped (class)

The clock stands still.

**Signature**

${fence("export declare class Stopped")}

Added in v0.1.0

# schemas

## Clock

What a clock is.

**Signature**

${fence("export declare const Clock: Schema.Struct<{}>")}

Added in v0.1.0
`

const source = `export const make = (start: number): Clock => ({ start })

export class Stopped extends Schema.TaggedError<Stopped>("Stopped")("Stopped", {
  /** Since when. */
  since: Schema.Finite
}) {
  override get message(): string {
    return "it stands still {"
  }

  /** Whether it goes again. */
  get isOver(): boolean {
    return false
  }
}

export const Clock = Schema.Struct({
  start: Schema.Finite,

  end: Schema.Finite
})
`

const zone = {
  name: "Zone",
  description: "A zone.",
  since: "0.1.0",
  examples: [],
  source: "",
  entries: [
    {
      category: "constructors",
      name: "utc",
      kind: "value",
      description: "UTC.",
      signature: "utc",
      examples: [],
      since: "0.1.0"
    }
  ]
}
const packages = [{ directory: "time", name: "@allm/time", modules: [{ ...parsePage(page), source }, zone] }]

describe("parsePage", () => {
  it("reads a module, its exports and their kinds, and is not misled by code", () => {
    const { description, entries, name } = parsePage(page)

    assert.strictEqual(name, "Clock")
    assert.strictEqual(description, "Tells the time. Never waits.")
    assert.deepStrictEqual(
      entries.map(({ category, kind, name }) => [category, name, kind]),
      [["constructors", "make", "value"], ["errors", "Stopped", "class"], ["schemas", "Clock", "value"]]
    )
    assert.deepStrictEqual(entries[0]?.examples, ["# no heading\nassert.ok(make(0))"])
    assert.strictEqual(entries[0]?.since, "0.1.0")
  })

  it("tells what is missing as empty", () => {
    const bare = page.replace("What a clock is.\n\n", "").replace(/Added in v0.1.0\n$/, "")

    assert.deepInclude(parsePage(bare).entries[2], { description: "", since: undefined })
  })
})

describe("declarationOf", () => {
  it("gives a declaration as it is written, empty lines inside included", () => {
    assert.match(declarationOf(source, "Clock") ?? "", /^export const Clock = [^]*end: Schema\.Finite\n\}\)$/)
    assert.isUndefined(declarationOf(source, "Clocks"))
  })

  it("leaves out what a class does", () => {
    assert.strictEqual(
      classOutline(declarationOf(source, "Stopped") ?? ""),
      `export class Stopped extends Schema.TaggedError<Stopped>("Stopped")("Stopped", {
  /** Since when. */
  since: Schema.Finite
}) {
  /** Whether it goes again. */
  get isOver(): boolean
}`
    )
  })
})

describe("renderReference", () => {
  const pages = renderReference(packages)
  const clock = pages.get("time/Clock.md") ?? ""

  it("makes a page per module, an index, and a list of all exports", () => {
    assert.deepStrictEqual([...pages.keys()], ["README.md", "exports.md", "time/Clock.md", "time/Zone.md"])
    assert.include(pages.get("README.md") ?? "", "- [Clock](time/Clock.md): Tells the time.\n")
    assert.include(pages.get("exports.md") ?? "", "- `make`: [Clock](time/Clock.md#make)\n")
  })

  it("resolves the links of comments", () => {
    assert.include(clock, "Makes a [`Clock`](#clock-1), see [`Zone.utc`](Zone.md#utc).")
    const dead = [{ ...packages[0]!, modules: [{ ...parsePage(page), source }] }]
    assert.throws(() => renderReference(dead), /\{@link Zone\.utc\} leads nowhere/)
  })

  it("shows the fields of a class, and no block that the tests of the docs would run", () => {
    assert.include(clock, "since: Schema.Finite")
    assert.notInclude(clock, "override get message")
    assert.notMatch(clock, /^```ts$/m)
  })

  it("says neither the version of each export nor what docgen adds", () => {
    assert.notMatch(clock, /Added in|text-delta|\*\*Signature\*\*|^\*\*\*$/m)
  })
})

describe("sentence", () => {
  it("is the first one, on one line", () => {
    assert.strictEqual(sentence("Runs `a.b`\nonce. Then ends.\n\nMore."), "Runs `a.b` once.")
    assert.strictEqual(sentence("No full stop"), "No full stop")
  })
})
