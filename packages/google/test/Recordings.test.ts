import { EventLaws } from "@allm/conformance"
import { Adapter, Allm, type Event, Message } from "@allm/core"
import { Google } from "@allm/google"
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Duration, Effect, Layer, Redacted, Stream } from "effect"
import * as fc from "effect/FastCheck"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { adapterOf, ask, bodyOf, clientOf, completedOf, contentsOf, frames, hi, messageOf, sse } from "./support.ts"

const folder = fileURLToPath(new URL("../../../../shared/fixtures", import.meta.url))
const isThere = existsSync(folder)
const where = isThere ? "" : ` (skipped: there is no ${folder})`

const text = (file: string) => readFileSync(`${folder}/${file}`, "utf8")
const chunks = (file: string): ReadonlyArray<string> => text(file).split("\n").filter((line) => line.trim() !== "")
const filesIn = (name: string) => isThere ? readdirSync(`${folder}/${name}`) : []

type Events = ReadonlyArray<Event.AdapterEvent>

const reasoningOf = (events: Events) =>
  events.map((event) => event._tag === "ReasoningDelta" ? event.delta : "").join("")

const signaturesOf = (events: Events): ReadonlyArray<string> => {
  const [, model] = contentsOf([Message.user("Hi"), messageOf(events)]) as ReadonlyArray<
    { readonly parts: ReadonlyArray<{ readonly thoughtSignature?: string }> }
  >
  return model!.parts.flatMap(({ thoughtSignature }) => thoughtSignature ?? [])
}

/** What each recording means. */
const meanings: { readonly [file: string]: (events: Events) => void } = {
  "google-text.chunks.txt": (events) => {
    assert.strictEqual(events.filter(({ _tag }) => _tag === "TextDelta").length, 2)
    assert.strictEqual(messageOf(events).content, "There are **3** \"r\"s in strawberry.\n\nst**r**awbe**rr**y")
    assert.deepStrictEqual(events[0], {
      _tag: "MessageStarted",
      id: "bH6LaZW8Fp_3nsEPqtaSwQ4",
      model: "gemini-3-pro-preview"
    })
    assert.deepInclude({ ...completedOf(events) }, {
      finishReason: "stop",
      rawFinishReason: "STOP",
      usage: { inputTokens: 9, outputTokens: 208, totalTokens: 217, reasoningTokens: 185 }
    })
    assert.match(signaturesOf(events)[0]!, /^EqsFCqgF.*Wcow=$/)
  },
  "google-text.json": (events) => {
    assert.match(messageOf(events).content as string, /^There are \*\*3\*\* r's in strawberry\.\n\nHere is/)
    assert.deepStrictEqual(completedOf(events).usage, {
      inputTokens: 9,
      outputTokens: 272,
      totalTokens: 281,
      reasoningTokens: 244
    })
    assert.strictEqual(signaturesOf(events).length, 1)
  },
  "google-reasoning.chunks.txt": (events) => {
    assert.match(
      messageOf(events).content as string,
      /^There are \*\*3\*\* "r"s in strawberry\.\n\n.*st\*\*r\*\*awbe\*\*rr\*\*y\.$/
    )
    assert.deepStrictEqual(completedOf(events).usage, {
      inputTokens: 9,
      outputTokens: 285,
      totalTokens: 294,
      reasoningTokens: 256
    })
    assert.match(signaturesOf(events)[0]!, /^Eo0HCooH/)
  },
  "google-reasoning.json": (events) => {
    assert.strictEqual(completedOf(events).usage?.reasoningTokens, 282)
    assert.strictEqual(completedOf(events).finishReason, "stop")
  },
  "google-tool-call.chunks.txt": (events) => {
    assert.deepStrictEqual(messageOf(events).toolCalls.map(({ arguments: args, id, name }) => ({ args, id, name })), [
      { args: { location: "San Francisco" }, id: "call_b36LacjwM668nsEP2tbsgQQ_0", name: "weather" }
    ])
    assert.strictEqual(messageOf(events).content, "")
    assert.deepInclude({ ...completedOf(events) }, {
      finishReason: "tool_calls",
      rawFinishReason: "STOP",
      usage: { inputTokens: 29, outputTokens: 60, totalTokens: 89, reasoningTokens: 45 }
    })
    assert.match(signaturesOf(events)[0]!, /^EqUCCqIC/)
  },
  "google-tool-call.json": (events) => {
    assert.deepStrictEqual(messageOf(events).toolCalls.map(({ arguments: args }) => args), [{
      location: "San Francisco"
    }])
    assert.strictEqual(completedOf(events).finishReason, "tool_calls")
    assert.deepStrictEqual(completedOf(events).metadata, {
      google: { finishMessage: "Model generated function call(s)." }
    })
  },
  "google-stream-no-args-tool-call.chunks.txt": (events) => {
    assert.match(reasoningOf(events), /^\*\*Processing User Requests\*\*\n\nI've started/)
    assert.strictEqual(messageOf(events).content, "")
    assert.deepStrictEqual(messageOf(events).toolCalls.map(({ arguments: args, name }) => [name, args]), [
      ["read_theme", {}],
      ["read_screen", { id: "A" }],
      ["read_screen", { id: "B" }],
      ["read_screen", { id: "C" }]
    ])
    assert.strictEqual(new Set(messageOf(events).toolCalls.map(({ id }) => id)).size, 4)
    assert.deepInclude({ ...completedOf(events) }, {
      finishReason: "tool_calls",
      usage: { inputTokens: 249, outputTokens: 241, totalTokens: 490, reasoningTokens: 183 }
    })
    assert.match(signaturesOf(events)[0]!, /^AY89a18a8/)
    assert.strictEqual(signaturesOf(events).length, 1)
  }
}

describe.skipIf(!isThere)(`recordings${where}`, () => {
  const files = filesIn("google").filter((file) => file !== "google-429-retry-info.json")

  it("are all looked at", () => {
    assert.deepStrictEqual(files.filter((file) => meanings[file] === undefined), [])
  })

  for (const file of files) {
    it.effect(`${file} means what it says`, () =>
      Effect.gen(function*() {
        const events = yield* file.endsWith(".json")
          ? ask(() =>
            new Response(text(`google/${file}`), { headers: { "content-type": "application/json; charset=UTF-8" } })
          )
          : ask(() => sse(frames(...chunks(`google/${file}`))))

        assert.deepStrictEqual(EventLaws.problems(events), [])
        meanings[file]!(events)
      }))
  }

  for (const file of files.filter((name) => name.endsWith(".chunks.txt"))) {
    it.effect(`${file} means the same as a list of chunks without server-sent events`, () =>
      Effect.gen(function*() {
        const list = `[${chunks(`google/${file}`).join(",\r\n")}]`
        const events = yield* ask(() => new Response(list, { headers: { "content-type": "application/json" } }))
        assert.deepStrictEqual(events, yield* ask(() => sse(frames(...chunks(`google/${file}`)))))
      }))

    it.effect.prop(
      `${file} means the same in any cut of its bytes`,
      [
        fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 20 }),
        fc.constantFrom("\n", "\r\n", "\r")
      ],
      ([cuts, newline]) =>
        Effect.gen(function*() {
          const body = frames(...chunks(`google/${file}`))
          const bytes = new TextEncoder().encode(body.replaceAll("\r\n", newline))
          const parts: Array<Uint8Array> = []
          for (let at = 0, i = 0; at < bytes.length; i++) {
            parts.push(bytes.slice(at, at += cuts[i % cuts.length]!))
          }
          assert.deepStrictEqual(yield* ask(() => sse(parts)), yield* ask(() => sse(body)))
        }),
      { fastCheck: { numRuns: 15 } }
    )
  }

  it.effect("google-429-retry-info.json tells how long to wait", () =>
    Effect.gen(function*() {
      const body = text("google/google-429-retry-info.json")
      const headers = { "content-type": "application/json" }
      const error = yield* Effect.flip(Effect.asVoid(ask(() => new Response(body, { status: 429, headers }))))
      assert.deepInclude({ ...error }, {
        reason: "rate_limited",
        status: 429,
        detail: "You exceeded your current quota, please check your plan.",
        retryAfter: Duration.millis(34_400)
      })
    }))
})

interface Cassette {
  readonly interactions: ReadonlyArray<{
    readonly request: { readonly method: string; readonly url: string; readonly body: string }
    readonly response: { readonly status: number; readonly headers: Record<string, string>; readonly body: string }
  }>
}

/** Plays a cassette and gives what was asked of it. */
const player = (file: string) => {
  const { interactions } = JSON.parse(text(`cassettes/gemini/${file}`)) as Cassette
  const asked: Array<{ readonly method: string; readonly url: string; readonly body: unknown }> = []
  const client = clientOf((request) => {
    const { body, headers, status } = interactions[asked.length]!.response
    const params = request.urlParams.map(([name, value]) => `${name}=${value}`).join("&")
    asked.push({ method: request.method, url: `${request.url}?${params}`, body: bodyOf(request) })
    return new Response(body, { status, headers })
  })
  const recorded = interactions.map(({ request: { body, method, url } }) => ({
    method,
    url,
    body: JSON.parse(body) as unknown
  }))
  return { asked, client, recorded }
}

describe.skipIf(!isThere)(`cassettes${where}`, () => {
  it("are all played", () => {
    assert.deepStrictEqual(filesIn("cassettes/gemini"), ["streams-text.json"])
  })

  it.effect("streams-text.json", () =>
    Effect.gen(function*() {
      const { asked, client, recorded } = player("streams-text.json")
      const messages = [Message.system("You are concise."), Message.user("Reply with exactly: Hello!")]
      const engine = Google.engine({
        model: "gemini-2.5-flash",
        apiKey: Redacted.make("a key"),
        temperature: 0,
        maxTokens: 80
      })
      const result = yield* Allm.chat(messages).pipe(Effect.provide(Layer.provide(engine, client)))

      assert.deepStrictEqual(asked, recorded)
      assert.deepInclude({ ...result.finalResponse }, {
        id: "NyTxaczMAZ-b_uMP6u--iQg",
        model: "gemini-2.5-flash",
        outputText: "Hello!",
        finishReason: "stop",
        usage: { inputTokens: 11, outputTokens: 18, totalTokens: 29, reasoningTokens: 16 }
      })
      assert.strictEqual(result.haltedReason, "completed")
    }))
})

// Written by hand, so that it holds wherever the recordings are not.
describe("a body written by hand", () => {
  const body = frames(
    { candidates: [{ content: { parts: [{ text: "Grüße 🌍, hm.", thought: true }], role: "model" }, index: 0 }] },
    { candidates: [{ content: { parts: [{ text: "Schön – 世界 👋\u2028" }] }, index: 0 }], responseId: "r1" },
    {
      candidates: [{
        content: {
          parts: [{ functionCall: { name: "sag", args: { "wörter": ["é", "🌧️"] } }, thoughtSignature: "c2ln" }]
        },
        finishReason: "STOP"
      }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 3 }
    }
  )

  it.effect.prop(
    "means the same in any cut of its bytes",
    [fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 }), fc.constantFrom("\n", "\r\n", "\r")],
    ([cuts, newline]) =>
      Effect.gen(function*() {
        const bytes = new TextEncoder().encode(body.replaceAll("\r\n", newline))
        const parts: Array<Uint8Array> = []
        for (let at = 0, i = 0; at < bytes.length; i++) parts.push(bytes.slice(at, at += cuts[i % cuts.length]!))
        const events = Chunk.toReadonlyArray(
          yield* Stream.runCollect(Adapter.stream(hi)).pipe(Effect.provide(adapterOf(() => sse(parts))))
        )
        assert.strictEqual(reasoningOf(events), "Grüße 🌍, hm.")
        assert.strictEqual(messageOf(events).content, "Schön – 世界 👋\u2028")
        assert.deepStrictEqual(messageOf(events).toolCalls[0]?.arguments, { "wörter": ["é", "🌧️"] })
        assert.deepStrictEqual(signaturesOf(events), ["c2ln"])
        assert.strictEqual(completedOf(events).usage?.totalTokens, 3)
      })
  )
})
