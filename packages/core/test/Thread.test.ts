import { Message, Thread } from "@allm/core"
import type { ValidationError } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Either, FastCheck, Option, Schema } from "effect"

type Checked = Either.Either<unknown, ValidationError.ValidationError>

const attempt = (construct: () => unknown): Checked =>
  Either.try({ try: construct, catch: (error) => error as ValidationError.ValidationError })

const refused = (checked: Checked): unknown =>
  Either.match(checked, { onLeft: ({ issues, reason }) => ({ reason, issues }), onRight: () => "accepted" })

const thrown = (construct: () => unknown) => refused(attempt(construct))

const paths = (checked: Checked): unknown =>
  Either.match(checked, { onLeft: ({ issues }) => issues.map((issue) => issue.path), onRight: () => "accepted" })

const hi = Message.user("Hi")
const hello = Message.assistant("Hello")

describe("Thread", () => {
  describe("make", () => {
    it("keeps messages in order", () => {
      assert.deepStrictEqual(Thread.make([hi, hello]), { messages: [hi, hello], metadata: {} })
    })

    it("takes any iterable, and metadata", () => {
      assert.deepStrictEqual(Thread.make(new Set([hi]), { topic: "greetings" }), {
        messages: [hi],
        metadata: { topic: "greetings" }
      })
    })

    it("VAL-28 throws with the place of every bad message", () => {
      assert.deepStrictEqual(
        thrown(() => Thread.make([hi, { role: "user", content: 42, metadata: {} } as never])),
        {
          reason: "invalid_thread",
          issues: [{
            path: ["messages", 1, "content"],
            code: "invalid_type",
            message: "content is text or a list of parts; got a number"
          }]
        }
      )
    })

    it("throws on metadata that JSON would lose", () => {
      assert.deepStrictEqual(paths(attempt(() => Thread.make([hi], { later: () => 1 }))), [["metadata"]])
    })
  })

  describe("append", () => {
    it("adds at the end and leaves the thread given as it is", () => {
      const before = Thread.make([hi], { topic: "greetings" })

      assert.deepStrictEqual(Thread.append(before, hello), {
        messages: [hi, hello],
        metadata: { topic: "greetings" }
      })
      assert.deepStrictEqual(before.messages, [hi])
    })

    it("adds several, also in a pipe", () => {
      assert.deepStrictEqual(Thread.append([hello, hi])(Thread.make([hi])).messages, [hi, hello, hi])
    })

    it("adds none", () => {
      assert.deepStrictEqual(Thread.append(Thread.make([hi]), []), Thread.make([hi]))
    })

    it.prop("of two lists is append of both in turn", [
      Thread.Thread,
      Schema.Array(Message.Message),
      Schema.Array(Message.Message)
    ], ([thread, first, second]) => {
      assert.deepStrictEqual(
        Thread.append(Thread.append(thread, first), second),
        Thread.append(thread, [...first, ...second])
      )
    })
  })

  describe("last", () => {
    it("is the newest message", () => {
      assert.deepStrictEqual(Thread.last(Thread.make([hi, hello])), Option.some(hello))
    })

    it("is none in an empty thread", () => {
      assert.deepStrictEqual(Thread.last(Thread.empty), Option.none())
    })
  })

  describe("validate", () => {
    it("VAL-27 accepts a thread without messages", () => {
      assert.deepStrictEqual(Either.getOrThrow(Thread.validate({ messages: [] })), Thread.empty)
    })

    it("fills in what was left out, in every message", () => {
      assert.deepStrictEqual(
        Either.getOrThrow(Thread.validate({ messages: [{ role: "user", content: "Hi" }] })),
        Thread.make([hi])
      )
    })

    it("VAL-28 reports every fault of every message under its place", () => {
      const checked = Thread.validate({ messages: [{ role: "robot", content: 42 }, hi, { role: "tool", content: "" }] })

      assert.deepStrictEqual(refused(checked), {
        reason: "invalid_thread",
        issues: [
          {
            path: ["messages", 0, "role"],
            code: "unknown",
            message: "\"robot\" is no role; write \"system\", \"user\", \"assistant\" or \"tool\""
          },
          {
            path: ["messages", 0, "content"],
            code: "invalid_type",
            message: "content is text or a list of parts; got a number"
          },
          {
            path: ["messages", 2, "toolCallId"],
            code: "required",
            message: "a tool message names the id of the call it answers"
          }
        ]
      })
    })

    it("refuses what has no messages", () => {
      assert.deepStrictEqual(refused(Thread.validate([hi])), {
        reason: "invalid_thread",
        issues: [{
          path: [],
          code: "invalid_type",
          message: "a thread is { messages: […] }, not an array; write Thread.make([…])"
        }]
      })
    })

    it.prop(
      "answers junk in any field with a thread or a refusal, and never throws",
      [Arbitrary.make(Thread.Thread), FastCheck.constantFrom("messages", "metadata"), FastCheck.anything()],
      ([thread, field, junk]) => {
        const checked = Thread.validate({ ...thread, [field]: junk })

        assert.isTrue(Either.isLeft(checked) || Schema.is(Thread.Thread)(checked.right))
      },
      { fastCheck: { numRuns: 500 } }
    )
  })
})
