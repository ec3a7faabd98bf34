import { Tool, ToolCall, ToolError, ToolResultEncoder, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Schema } from "effect"

const encode = ToolResultEncoder.json.encode

const encoded = (values: ReadonlyArray<unknown>) => Effect.forEach(values, encode)

/** The place and the sentence of a refusal. */
const refused = (value: unknown) =>
  Effect.map(Effect.flip(Effect.suspend(() => encode(value))), ({ detail, path }) => ({ detail, path }))

class Point {
  readonly x: number
  readonly y: number
  #hidden = 1
  constructor(x: number, y: number) {
    this.x = x
    this.y = y
  }
  get sum() {
    return this.x + this.y + this.#hidden
  }
}

describe("ToolResultEncoder.json", () => {
  it.effect("ENC-01 gives text as it is", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* encoded(["hi", "\"quoted\"", "{\"a\":1}"]), ["hi", "\"quoted\"", "{\"a\":1}"])
    }))

  it.effect("ENC-02 gives empty text as it is", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* encode(""), "")
    }))

  it.effect("ENC-03 gives objects and arrays as JSON", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* encoded([{ a: 1 }, [1, "two", null], {}, []]), [
        "{\"a\":1}",
        "[1,\"two\",null]",
        "{}",
        "[]"
      ])
    }))

  it.effect("ENC-05 gives numbers and booleans as JSON", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* encoded([42, -0.5, true, false]), ["42", "-0.5", "true", "false"])
    }))

  it.effect("ENC-06 gives null for nothing", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* encoded([null, undefined]), ["null", "null"])
    }))

  it.effect("gives null for numbers JSON does not know, as JSON.stringify does", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* encoded([Number.NaN, Infinity, [-Infinity]]), ["null", "null", "[null]"])
    }))

  it.effect("leaves out undefined members and gives null for undefined items", () =>
    Effect.gen(function*() {
      // oxlint-disable-next-line no-sparse-arrays
      const sparse = [1, , 3]

      assert.deepStrictEqual(yield* encoded([{ a: undefined, b: 1 }, [undefined, 1], sparse]), [
        "{\"b\":1}",
        "[null,1]",
        "[1,null,3]"
      ])
    }))

  it.effect("gives dates and URLs as text", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* encoded([new Date(0), { at: new Date(0) }, new Date(Number.NaN), new URL("https://allm.example/a?b=c")]),
        [
          "\"1970-01-01T00:00:00.000Z\"",
          "{\"at\":\"1970-01-01T00:00:00.000Z\"}",
          "null",
          "\"https://allm.example/a?b=c\""
        ]
      )
    }))

  it.effect("gives a map as an object, or as pairs when its keys are no text", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* encoded([new Map([["a", new Date(0)]]), new Map<unknown, unknown>([[1, "one"], ["b", 2]]), new Map()]),
        ["{\"a\":\"1970-01-01T00:00:00.000Z\"}", "[[1,\"one\"],[\"b\",2]]", "{}"]
      )
    }))

  it.effect("gives sets, typed arrays and buffers as arrays", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* encoded([
          new Set(["a", new Set([1])]),
          new Uint8Array([1, 255]),
          new Float32Array([0.5]),
          Buffer.from("hi"),
          new Uint8Array([7, 8]).buffer
        ]),
        ["[\"a\",[1]]", "[1,255]", "[0.5]", "[104,105]", "[7,8]"]
      )
    }))

  it.effect("gives an error's name and message, and nothing else of it", () =>
    Effect.gen(function*() {
      const error = Object.assign(new TypeError("bad", { cause: new Error("inner") }), { password: "hunter2" })

      assert.strictEqual(yield* encode({ error }), "{\"error\":{\"name\":\"TypeError\",\"message\":\"bad\"}}")
    }))

  it.effect("asks whatever has a toJSON, and encodes its answer", () =>
    Effect.gen(function*() {
      const keys: Array<unknown> = []
      const money = {
        amount: 5n,
        toJSON: (key: unknown) => {
          keys.push(key)
          return { amount: 5, at: new Date(0) }
        }
      }

      assert.deepStrictEqual(yield* encoded([money, { price: money }, [money]]), [
        "{\"amount\":5,\"at\":\"1970-01-01T00:00:00.000Z\"}",
        "{\"price\":{\"amount\":5,\"at\":\"1970-01-01T00:00:00.000Z\"}}",
        "[{\"amount\":5,\"at\":\"1970-01-01T00:00:00.000Z\"}]"
      ])
      assert.deepStrictEqual(keys, ["", "price", "0"])
    }))

  it.effect("gives the own members of any other object", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* encoded([new Point(1, 2), Object.create(null), /a+/g, Object("boxed")]), [
        "{\"x\":1,\"y\":2}",
        "{}",
        "\"/a+/g\"",
        "\"boxed\""
      ])
    }))

  it.effect("keeps a key named __proto__ as a key", () =>
    Effect.gen(function*() {
      const value: unknown = JSON.parse("{\"__proto__\":{\"a\":1},\"b\":2}")
      const changed = { ...(value as object), at: new Date(0) }

      assert.strictEqual(yield* encode(value), "{\"__proto__\":{\"a\":1},\"b\":2}")
      assert.strictEqual(
        yield* encode(Object.assign(JSON.parse("{\"__proto__\":1}"), { at: new Date(0) })),
        "{\"__proto__\":1,\"at\":\"1970-01-01T00:00:00.000Z\"}"
      )
      assert.match(yield* encode(changed), /"b":2/)
    }))

  it.effect("takes something that appears twice for no cycle", () =>
    Effect.gen(function*() {
      const shared = { a: 1 }

      assert.strictEqual(yield* encode({ one: shared, two: [shared] }), "{\"one\":{\"a\":1},\"two\":[{\"a\":1}]}")
    }))

  it.effect("changes nothing of what it encodes", () =>
    Effect.gen(function*() {
      const value = Object.freeze({ at: new Date(0), list: Object.freeze([1, undefined, new Set([2])]) })

      yield* encode(value)

      assert.deepStrictEqual(value, { at: new Date(0), list: [1, undefined, new Set([2])] })
    }))

  it.effect.prop("says what JSON.stringify says about JSON", [fc.jsonValue()], ([value]) =>
    Effect.gen(function*() {
      assert.strictEqual(yield* encode(value), typeof value === "string" ? value : JSON.stringify(value))
    }))

  it.effect.prop(
    "gives text that parses, or a refusal with a place, for anything",
    [fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true })],
    ([value]) =>
      Effect.gen(function*() {
        const result = yield* Effect.either(encode([value]))

        if (result._tag === "Right") assert.isArray(JSON.parse(result.right))
        else assert.strictEqual(result.left.path[0], 0)
      })
  )
})

describe("ToolResultEncoder.json refuses", () => {
  it.effect("ENC-11 a bigint, a function and a symbol, with the place", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* Effect.forEach([1n, () => 1, Symbol("s")], refused), [
        { path: [], detail: "a bigint has no JSON form" },
        { path: [], detail: "a function has no JSON form" },
        { path: [], detail: "a symbol has no JSON form" }
      ])
      assert.deepStrictEqual(yield* refused({ totals: [1, { net: 2n }] }), {
        path: ["totals", 1, "net"],
        detail: "a bigint has no JSON form"
      })
    }))

  it.effect("ENC-11 a cycle, at the place where it closes", () =>
    Effect.gen(function*() {
      const parent: { name: string; children: Array<unknown> } = { name: "root", children: [] }
      parent.children.push({ parent })
      const map = new Map<string, unknown>()
      map.set("self", map)

      assert.deepStrictEqual(yield* Effect.forEach([parent, map], refused), [
        { path: ["children", 0, "parent"], detail: "it contains itself" },
        { path: ["self"], detail: "it contains itself" }
      ])
    }))

  it.effect("the first culprit when there are several", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* refused({ a: 1, b: [0, 1n], c: () => 1 })).path, ["b", 1])
    }))

  it.effect("culprits inside maps, sets, typed arrays and toJSON", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* Effect.forEach(
          [
            new Map([["a", 1n]]),
            { s: new Set([0, 1n]) },
            { b: new BigInt64Array([1n]) },
            { j: { toJSON: () => ({ deep: 1n }) } }
          ],
          (value) => Effect.map(refused(value), ({ path }) => path)
        ),
        [["a"], ["s", 1], ["b", 0], ["j", "deep"]]
      )
    }))

  it.effect("a list whose toJSON gives what JSON lacks", () =>
    Effect.gen(function*() {
      const list = Object.assign([1], { toJSON: () => 1n })

      assert.deepStrictEqual((yield* refused({ list })).path, ["list"])
    }))

  it.effect("what only exists over time or in memory", () =>
    Effect.gen(function*() {
      const details = yield* Effect.forEach(
        [Promise.resolve(1), new WeakMap(), new DataView(new ArrayBuffer(1)), [1].values()],
        (value) => Effect.map(refused({ value }), ({ detail, path }) => [path, detail])
      )

      assert.deepStrictEqual(details, [
        [["value"], "a Promise has no JSON form; await it"],
        [["value"], "a WeakMap has no JSON form"],
        [["value"], "a DataView has no JSON form"],
        [["value"], "an object has no JSON form"]
      ])
    }))

  it.effect("nesting without end", () =>
    Effect.gen(function*() {
      const deep = Array.from({ length: 5000 }).reduce<unknown>((inner) => ({ inner }), 1)

      assert.match((yield* refused(deep)).detail, /nested deeper than 1000 levels/)
    }))

  it.effect("what throws when it is read, without telling what it said", () =>
    Effect.gen(function*() {
      const getter = {
        get password(): string {
          throw new Error("hunter2")
        }
      }
      const toJSON = {
        toJSON: () => {
          throw new Error("hunter2")
        }
      }

      const details = yield* Effect.forEach([{ getter }, { toJSON }], refused)

      assert.deepStrictEqual(details.map(({ path }) => path), [["getter"], ["toJSON"]])
      assert.notMatch(JSON.stringify(details), /hunter2/)
    }))

  it.effect("what cannot even be looked at", () =>
    Effect.gen(function*() {
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()

      assert.deepStrictEqual((yield* refused({ a: proxy })).path, ["a"])
      assert.deepStrictEqual((yield* refused(proxy)).path, [])
    }))

  it.effect("or encodes, but never throws at, what changes while it is read", () =>
    Effect.gen(function*() {
      let reads = 0
      const fickle = {
        get n() {
          if (reads++ > 0) throw new Error("hunter2")
          return 1
        }
      }

      const result = yield* Effect.either(Effect.suspend(() => encode(fickle)))

      assert.strictEqual(
        result._tag === "Right" ? result.right : result.left._tag,
        reads === 1 ? "{\"n\":1}" : "EncodingFailed"
      )
    }))

  it("in one sentence", () => {
    const error = new ToolError.EncodingFailed({ toolName: "x", path: ["a b", 0], detail: "a bigint has no JSON form" })

    assert.strictEqual(error.message, "tool error (x): encoding_failed: at $[\"a b\"][0] a bigint has no JSON form")
  })
})

describe("ToolResultEncoder layers", () => {
  const toolCall = ToolCall.make({ id: "c0", name: "x", arguments: {} })
  const run = (handler: () => unknown) => {
    const tool = Tool.make("x", { description: "Does something", handler })
    return Effect.map(ToolRunner.run([toolCall], [tool]), ({ messages, outcomes }) => ({
      content: messages[0]?.content,
      tag: outcomes[0]?.result._tag
    }))
  }

  it.effect("put an encoder of one's own in place", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* run(() => ({ a: 1 })), { content: "<object>", tag: "Ok" })
    }).pipe(
      Effect.provide(ToolResultEncoder.layer({ encode: (value) => Effect.succeed(`<${typeof value}>`) }))
    ))

  it.effect("may take time and need the encoder's own resources", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* run(() => 5), { content: "5!", tag: "Ok" })
    }).pipe(
      Effect.provide(ToolResultEncoder.layer({
        encode: (value) => Effect.zipRight(Effect.yieldNow(), Effect.succeed(`${String(value)}!`))
      }))
    ))

  for (
    const [how, broken] of [
      ["fails", () => Effect.fail(new ToolError.EncodingFailed({ path: ["a"], detail: "too large" }))],
      ["dies", () => Effect.die(new Error("secret"))],
      ["throws", () => {
        throw new Error("secret")
      }],
      ["gives no text", () => Effect.succeed(5 as unknown as string)]
    ] as const
  ) {
    it.effect(`cannot break the run when an encoder ${how}`, () =>
      Effect.gen(function*() {
        const { content, tag } = yield* run(() => ({ a: 1 }))

        assert.strictEqual(tag, "EncodingFailed")
        assert.match(content ?? "", /^\{"error":"tool error \(x\): encoding_failed at \$/)
        assert.notMatch(content ?? "", /secret/)
      }).pipe(Effect.provide(ToolResultEncoder.layer({ encode: broken }))))
  }

  it.effect("apply to the form the success schema gives", () =>
    Effect.gen(function*() {
      const tool = Tool.make("x", { description: "Tells", success: Schema.BigInt, handler: () => 5n })
      const { messages } = yield* ToolRunner.run([toolCall], [tool])

      assert.deepStrictEqual(messages.map((message) => message.content), ["5"])
    }))

  it.effect("say where a value has no text form", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* run(() => ({ totals: [1, 2n] })), {
        content: "{\"error\":\"tool error (x): encoding_failed at $.totals[1]: a bigint has no JSON form\"}",
        tag: "EncodingFailed"
      })
    }))
})
