import { assert, describe, it } from "vitest"
import { coverage } from "../coverage.mjs"

const entry = {
  category: "constructors",
  name: "make",
  kind: "value",
  description: "Makes one.",
  signature: "export declare const make: (a: number) => number",
  examples: ["make(1)"],
  since: "0.1.0"
}
const source = "export const make = (a: number): number => a\n"
const module = { name: "One", description: "One.", since: "0.1.0", examples: [], source, entries: [entry] }
const changed = (change: object) => coverage({ ...module, entries: [{ ...entry, ...change }] })

describe("coverage", () => {
  it("counts what is documented", () => {
    assert.deepStrictEqual(coverage(module), { total: 1, documented: 1, problems: [] })
  })

  it("names what an export lacks", () => {
    assert.deepStrictEqual(changed({ description: "", since: undefined, category: "utils", examples: [] }), {
      total: 1,
      documented: 0,
      problems: ["One.make: no description, no @since, no category of ours, utils, a function without an @example"]
    })
    assert.deepStrictEqual(changed({ kind: "interface", description: "" }).problems, [
      "One.make (interface): no description"
    ])
  })

  it("asks for an example of functions only: generic, overloaded or plain", () => {
    const lacks = (signature: string) => changed({ signature, examples: [] }).problems.length === 1
    assert.isTrue(lacks("export declare const make: <A>(a: A) => A"))
    assert.isTrue(lacks("export declare const make: {\n  (a: number): number\n}"))
    assert.isTrue(lacks("export declare function make(a: number): number"))
    assert.isFalse(lacks("export declare const make: Layer.Layer<One>"))
    assert.isFalse(lacks("export declare const make: { readonly a: number }"))
  })

  it("asks for none where none would be run", () => {
    const suite = { ...module, name: "OneSuite", entries: [{ ...entry, examples: [] }] }
    assert.deepStrictEqual(coverage(suite).problems, [])
    const listed = { ...suite, name: "One", source: "const make_ = 1\nexport { make_ as make }\n" }
    assert.deepStrictEqual(coverage(listed).problems, [])
  })

  it("notices what docgen overlooked", () => {
    const source =
      "export const make = 1\nexport interface Lost {}\nexport {\n  /** { } */\n  a as gone,\n  type Away\n}\n"
    assert.deepStrictEqual(
      coverage({ ...module, source }).problems,
      ["Lost", "gone", "Away"].map((name) => `One.${name}: not in the output of docgen`)
    )
  })

  it("asks of an index neither a category nor examples", () => {
    const index = { ...module, name: "index", source: "", entries: [{ ...entry, category: "exports", examples: [] }] }
    assert.deepStrictEqual(coverage(index).problems, [])
  })
})
