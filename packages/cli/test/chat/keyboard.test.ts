import { assert, describe, it } from "@effect/vitest"
import { Keyboard, lineBreak } from "../../src/internal/terminal/keyboard.ts"

const make = () => {
  const heard: Array<string> = []
  const keyboard = new Keyboard({
    keys: (keys) => {
      heard.push(keys)
      if (keys === "\r") keyboard.isAsked = false
    },
    interrupt: () => heard.push("interrupt"),
    suspend: () => heard.push("suspend")
  })
  return { keyboard, heard }
}

describe("Keyboard", () => {
  it("gives keys to the line that is asked for, up to its end, and keeps the rest", () => {
    const { heard, keyboard } = make()
    keyboard.isAsked = true
    keyboard.hear("hello\rand ")
    keyboard.hear("more")

    assert.deepStrictEqual(heard, ["hello", "\r"])
    assert.strictEqual(keyboard.takeTyped(), "and more")
    assert.strictEqual(keyboard.takeTyped(), "")
  })

  it("hears Ctrl-C and Ctrl-Z at any time", () => {
    const { heard, keyboard } = make()
    keyboard.hear("a\u0003b\u001a")
    keyboard.isAsked = true
    keyboard.hear("c\u0003")

    assert.deepStrictEqual(heard, ["interrupt", "suspend", "c", "interrupt"])
    assert.strictEqual(keyboard.typed, "ab")
  })

  it("edits what is typed ahead, and leaves out keys that are no text", () => {
    const { keyboard } = make()
    keyboard.hear("one twoo\u007f thre\u0017\u001b[A\u001b[1;5C\u001bOP\tfour\r\r")

    assert.strictEqual(keyboard.takeTyped(), "one two four")
    keyboard.hear("gone\u0015stays\rhere")
    assert.strictEqual(keyboard.takeTyped(), `stays${lineBreak}here`)
  })

  it("makes one line of what is pasted, also when the marks come in pieces", () => {
    const { heard, keyboard } = make()
    keyboard.isAsked = true
    for (const piece of ["a\u001b[2", "00~one\r\ntwo\u0003\tthr", "ee\u001b[20", "1~b"]) keyboard.hear(piece)

    assert.strictEqual(heard.join(""), `aone${lineBreak}two  three` + "b")
  })

  it("takes a lone escape for a key", () => {
    const { heard, keyboard } = make()
    keyboard.isAsked = true
    keyboard.hear("\u001b")

    assert.deepStrictEqual(heard, ["\u001b"])
  })
})
