import { assert, describe, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { wishesIn } from "../../src/internal/demo/rules.ts"

const inWords = (text: string) => wishesIn(text).map(({ arguments: args, name }) => `${name} ${JSON.stringify(args)}`)

const table: ReadonlyArray<readonly [text: string, ...wishes: ReadonlyArray<string>]> = [
  ["What time is it in Tokyo?", `clock {"zone":"Asia/Tokyo"}`],
  ["WHAT TIME IS IT IN TOKYO???", `clock {"zone":"Asia/Tokyo"}`],
  ["tokyo time pls", `clock {"zone":"Asia/Tokyo"}`],
  [
    "the time in new york, são paulo & zürich",
    `clock {"zone":"America/New_York"}`,
    `clock {"zone":"America/Sao_Paulo"}`,
    `clock {"zone":"Europe/Zurich"}`
  ],
  ["What's the date in Europe/Oslo?", `clock {"zone":"Europe/Oslo"}`],
  ["What’s the time in Atlantis", `clock {"zone":"Atlantis"}`],
  ["What time is it in Tokyo and Atlantis?", `clock {"zone":"Asia/Tokyo"}`, `clock {"zone":"Atlantis"}`],
  ["what time is it", "clock {}"],
  ["What is 2 * (3 + 4)^2?", `calculator {"expression":"2 * (3 + 4)^2"}`],
  ["what's 3 times 4 plus 1", `calculator {"expression":"3 * 4 + 1"}`],
  ["15% of 80", `calculator {"expression":"15 / 100 * 80"}`],
  ["the square root of 16 divided by 2", `calculator {"expression":"sqrt(16) / 2"}`],
  ["how much is 1,000,000 / 4?", `calculator {"expression":"1000000 / 4"}`],
  ["max(1,200) - pi", `calculator {"expression":"max(1,200) - pi"}`],
  ["3 x 4, and 7 ÷ 2", `calculator {"expression":"3 * 4"}`, `calculator {"expression":"7 ÷ 2"}`],
  ["-3 + 4", `calculator {"expression":"-3 + 4"}`],
  ["what is 2 * (3 + 4", `calculator {"expression":"2 * (3 + 4"}`],
  ["What is in README.md?", `read_file {"path":"README.md"}`],
  ["read docs/guide/01-tools.md, please", `read_file {"path":"docs/guide/01-tools.md"}`],
  ["Show me ../../etc/passwd", `read_file {"path":"../../etc/passwd"}`],
  ["read /etc/passwd", `read_file {"path":"/etc/passwd"}`],
  ["read grüße.txt", `read_file {"path":"grüße.txt"}`],
  [
    "what is in package.json and README.md, and list the files in docs",
    `read_file {"path":"package.json"}`,
    `read_file {"path":"README.md"}`,
    `list_files {"path":"docs"}`
  ],
  ["List the files here", "list_files {}"],
  ["What files are in packages/cli?", `list_files {"path":"packages/cli"}`],
  ["what's in this directory?", "list_files {}"],
  ["list the files in ..", `list_files {"path":".."}`],
  ["Write a note that says hello", `write_note {"path":"note.txt","text":"hello"}`],
  ["write a note to todo.txt saying buy milk and eggs.", `write_note {"path":"todo.txt","text":"buy milk and eggs"}`],
  ["Save a note in todo.txt: \"2 + 2 is 4\"", `write_note {"path":"todo.txt","text":"2 + 2 is 4"}`],
  [
    "Write a note that says “read README.md” and tell me the time in Oslo",
    `write_note {"path":"note.txt","text":"read README.md"}`,
    `clock {"zone":"Europe/Oslo"}`
  ],
  ["Write a note", `write_note {"path":"note.txt","text":"This is a note."}`],
  [
    "Ask me something",
    `ask_person {"question":"What would you like to see next?","choices":["the time","a sum","the files here"]}`
  ],
  [
    "Ask me which colour: red, green or blue.",
    `ask_person {"question":"Which colour?","choices":["red","green","blue"]}`
  ],
  [
    "Ask me about lunch, and what is 1+1",
    `ask_person {"question":"Lunch?","choices":["yes","no"]}`,
    `calculator {"expression":"1+1"}`
  ],
  ["flip a coin", "flip_coin {}"],
  ["be slow, stubborn, flaky and broken", "slow {}", "stubborn {}", "flaky {}", "broken {}"],
  [
    "What time is it in Tokyo and what is 2+2 and what is in README.md?",
    `clock {"zone":"Asia/Tokyo"}`,
    `calculator {"expression":"2+2"}`,
    `read_file {"path":"README.md"}`
  ],
  ["2+2 and 2+2", `calculator {"expression":"2+2"}`]
]

describe("rules", () => {
  for (const [text, ...wishes] of table) {
    it(`understand ${JSON.stringify(text)}`, () => {
      assert.deepStrictEqual(inWords(text), wishes)
    })
  }

  for (
    const text of [
      "",
      "hello",
      "日本語でお願いします 🎉",
      "I have 3 - or more",
      "On 2026-11-18 at 10:30 I was in room 12",
      "version 3.22.4 is out",
      "in 2 days",
      "e",
      "(",
      "I like times tables"
    ]
  ) {
    it(`ask for nothing in ${JSON.stringify(text)}`, () => {
      assert.deepStrictEqual(inWords(text), [])
    })
  }

  it("understand everything at once", () => {
    const names = wishesIn("Try everything at once").map(({ name }) => name)

    assert.sameMembers(names, [
      "clock",
      "calculator",
      "list_files",
      "slow",
      "stubborn",
      "flaky",
      "broken",
      "ask_person",
      "write_note"
    ])
  })

  it("find no more than a dozen things in any text, each once, and no end to none", () => {
    const words = FastCheck.constantFrom(
      ..."what time in Tokyo Oslo and 2 + ( ) ^ 3 read .. / README.md write note : \" that says ask me or list files 漢字 🎉 % of"
        .split(" ")
    )
    const texts = FastCheck.oneof(
      FastCheck.fullUnicodeString({ maxLength: 200 }),
      FastCheck.array(words, { maxLength: 60 }).map((words) => words.join(" "))
    )
    FastCheck.assert(FastCheck.property(texts, (text) => {
      const found = inWords(text)
      return found.length <= 12 && new Set(found).size === found.length
    }))
  })

  it("take no longer for a text made to be slow", () => {
    const began = performance.now()
    for (const piece of ["write ", "a.", "../", "1 ", "in A ", "((((", "ask me ", "list in ", "%of "]) {
      wishesIn(piece.repeat(4000))
    }

    assert.isBelow(performance.now() - began, 3000)
  })
})
