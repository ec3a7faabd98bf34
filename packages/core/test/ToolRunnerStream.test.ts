import { Event, OnToolError, Tool, ToolCall, ToolResult, ToolRunner } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Chunk, Deferred, Effect, Exit, Fiber, Queue, Schema, Stream, TestClock } from "effect"

const call = (id: string, name: string, args: unknown = {}) => ToolCall.make({ id, name, arguments: args })

const collect = <E, R>(stream: Stream.Stream<Event.ToolEvent, E, R>) =>
  Effect.map(Stream.runCollect(stream), Chunk.toReadonlyArray)

const told = (events: ReadonlyArray<Event.ToolEvent>) =>
  events.map((event) => event._tag === "ManualToolCalls" ? event._tag : `${event.toolCallId} ${event._tag}`)

const hi = Tool.make("hi", { description: "Says hi", handler: () => "hi" })
const fails = Tool.make("fails", { description: "Reports a failure", handler: () => Effect.fail("bad_arg") })
const exits = Tool.make("exits", { description: "Interrupts itself", handler: () => Effect.interrupt })
const done = Tool.make("done", {
  description: "Halts",
  handler: () => ToolResult.halt("plan_submitted", { status: "ok" })
})
const ask = Tool.make("ask", { description: "Asks", handler: () => ToolResult.askUser("which city?") })
const sleep = Tool.make("sleep", {
  description: "Answers after a while",
  parameters: { millis: Schema.Number },
  handler: ({ millis }) => Effect.as(Effect.sleep(millis), `slept ${millis}`)
})

describe("ToolRunner", () => {
  describe("stream", () => {
    it.effect("RSTR-01 tells started, completed and encoded, in order", () =>
      Effect.gen(function*() {
        const events = yield* collect(ToolRunner.stream([call("c0", "hi", { loud: true })], [hi]))

        assert.deepStrictEqual(events.map(({ _tag }) => _tag), [
          "ToolExecutionStarted",
          "ToolExecutionCompleted",
          "ToolResultEncoded"
        ])
        assert.deepStrictEqual(events[0], {
          _tag: "ToolExecutionStarted",
          toolCallId: "c0",
          toolName: "hi",
          arguments: { loud: true }
        })
        assert.deepStrictEqual(events.map(Event.isEvent), [true, true, true])
      }))

    it.effect("RSTR-01 tells valid events whatever happens, and each goes to JSON and back", () =>
      Effect.gen(function*() {
        const manual = Tool.make("manual", { description: "The caller's", manual: true })
        const calls = ["hi", "fails", "exits", "done", "ask", "manual"].map((name, i) => call(`c${i}`, name))
        const events = yield* collect(ToolRunner.stream(calls, [hi, fails, exits, done, ask, manual]))
        const json = Schema.parseJson(Event.Event)

        assert.strictEqual(events.length, 16)
        for (const event of events) {
          const again = yield* Schema.decode(json)(yield* Schema.encode(json)(event))

          assert.strictEqual(Event.isEvent(event), true)
          assert.strictEqual(again._tag, event._tag)
        }
      }))

    it.effect("RSTR-03 tells nothing of the end of a step or a chat", () =>
      Effect.gen(function*() {
        const events = yield* collect(ToolRunner.stream([call("c0", "hi"), call("c1", "done")], [hi, done]))

        assert.deepStrictEqual(events.filter(({ _tag }) => /^(Step|Chat|Message)/.test(_tag)), [])
        assert.strictEqual(events.at(-1)?._tag, "ToolHalt")
      }))

    it.effect("RSTR-04 fails with the unknown tool before the first event", () =>
      Effect.gen(function*() {
        const events: Array<Event.ToolEvent> = []
        const error = yield* ToolRunner.stream([call("c0", "hi"), call("c1", "missing")], [hi]).pipe(
          Stream.runForEach((event) => Effect.sync(() => events.push(event))),
          Effect.flip
        )

        assert.deepInclude(error, { _tag: "UnknownTool", toolName: "missing" })
        assert.deepStrictEqual(events, [])
      }))

    it.effect("RSTR-05 tells a halt with the error instead of an encoded result", () =>
      Effect.gen(function*() {
        const events = yield* collect(ToolRunner.stream([call("c0", "fails")], [fails], { onToolError: "halt" }))

        assert.deepStrictEqual(told(events), ["c0 ToolExecutionStarted", "c0 ToolExecutionCompleted", "c0 ToolHalt"])
        const [, completed, halt] = events
        assert.strictEqual(completed?._tag === "ToolExecutionCompleted" && completed.result._tag, "HandlerFailed")
        assert.deepInclude(halt, {
          toolCallId: "c0",
          reason: "tool_error",
          content: "{\"error\":\"bad_arg\"}",
          isError: true
        })
      }))

    it.effect("RSTR-07 tells the error of a handler that interrupted itself", () =>
      Effect.gen(function*() {
        const events = yield* collect(ToolRunner.stream([call("c0", "exits")], [exits]))
        const completed = events[1]

        assert.strictEqual(completed?._tag === "ToolExecutionCompleted" && completed.result._tag, "HandlerExit")
      }))

    it.effect("RSTR-08 ends with the halt of a handler", () =>
      Effect.gen(function*() {
        const events = yield* collect(ToolRunner.stream([call("c0", "done")], [done]))

        assert.deepStrictEqual(told(events), ["c0 ToolExecutionStarted", "c0 ToolExecutionCompleted", "c0 ToolHalt"])
        assert.deepStrictEqual(events.at(-1), {
          _tag: "ToolHalt",
          toolCallId: "c0",
          toolName: "done",
          reason: "plan_submitted",
          result: { status: "ok" },
          content: "{\"status\":\"ok\"}",
          isError: false
        })
      }))

    it.effect("RSTR-09 ends with the question of a handler", () =>
      Effect.gen(function*() {
        const events = yield* collect(ToolRunner.stream([call("c0", "ask")], [ask]))

        assert.deepStrictEqual(told(events), [
          "c0 ToolExecutionStarted",
          "c0 ToolExecutionCompleted",
          "c0 AskUserRequested"
        ])
        assert.deepStrictEqual(events.at(-1), {
          _tag: "AskUserRequested",
          toolCallId: "c0",
          toolName: "ask",
          question: "which city?",
          options: {}
        })
      }))

    it.effect("RSTR-11 is empty when there is nothing to run", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* collect(ToolRunner.stream([], [])), [])
      }))

    it.effect("RSTR-13 tells the value as it is, and the text it became", () =>
      Effect.gen(function*() {
        const value = { seen: new Set(["a"]) }
        const give = Tool.make("give", { description: "Gives a set", handler: () => value })
        const events = yield* collect(ToolRunner.stream([call("c0", "give")], [give]))
        const [, completed, encoded] = events

        assert.strictEqual(
          completed?._tag === "ToolExecutionCompleted" && completed.result._tag === "Ok" && completed.result.value,
          value
        )
        assert.deepStrictEqual(encoded, {
          _tag: "ToolResultEncoded",
          toolCallId: "c0",
          toolName: "give",
          content: "{\"seen\":[\"a\"]}",
          isError: false
        })
      }))

    it.effect("RSTR-15 tells that a call started while it still runs", () =>
      Effect.gen(function*() {
        const gate = yield* Deferred.make<string>()
        const waits = Tool.make("waits", { description: "Waits", handler: () => Deferred.await(gate) })
        const events = yield* Queue.unbounded<string>()
        const fiber = yield* ToolRunner.stream([call("c0", "waits")], [waits]).pipe(
          Stream.runForEach((event) => Queue.offer(events, event._tag)),
          Effect.fork
        )

        assert.strictEqual(yield* Queue.take(events), "ToolExecutionStarted")
        assert.strictEqual(yield* Queue.size(events), 0)

        yield* Deferred.succeed(gate, "at last")
        yield* Fiber.join(fiber)

        assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Queue.takeAll(events)), [
          "ToolExecutionCompleted",
          "ToolResultEncoded"
        ])
      }))

    it.effect("RSTR-15 tells the start of a queued call when its turn comes, and ends in order of completion", () =>
      Effect.gen(function*() {
        const calls = [
          call("c0", "sleep", { millis: 30 }),
          call("c1", "sleep", { millis: 10 }),
          call("c2", "sleep", { millis: 5 })
        ]
        const fiber = yield* Effect.fork(collect(ToolRunner.stream(calls, [sleep], { concurrency: 2 })))
        yield* TestClock.adjust("30 millis")

        assert.deepStrictEqual(told(yield* Fiber.join(fiber)), [
          "c0 ToolExecutionStarted",
          "c1 ToolExecutionStarted",
          "c1 ToolExecutionCompleted",
          "c1 ToolResultEncoded",
          "c2 ToolExecutionStarted",
          "c2 ToolExecutionCompleted",
          "c2 ToolResultEncoded",
          "c0 ToolExecutionCompleted",
          "c0 ToolResultEncoded"
        ])
      }))

    it.effect("RSTR-16 tells a replacement and the failure it stands for", () =>
      Effect.gen(function*() {
        const events = yield* collect(ToolRunner.stream([call("c0", "fails")], [fails], {
          onToolError: () => OnToolError.continueWith({ cached: true })
        }))
        const [, completed, encoded] = events

        assert.strictEqual(completed?._tag, "ToolExecutionCompleted")
        if (completed?._tag !== "ToolExecutionCompleted") return
        assert.deepInclude(completed.result, { _tag: "Ok", value: { cached: true } })
        assert.deepInclude(completed.replaced, { _tag: "HandlerFailed", failure: "bad_arg" })
        assert.deepInclude(encoded, { content: "{\"cached\":true}", isError: false })
      }))

    it.effect("RSTR-17 stops the tools when its reader stops, and waits for what they release", () =>
      Effect.gen(function*() {
        const released: Array<string> = []
        const waits = Tool.make("waits", {
          description: "Waits, and says when it is stopped",
          handler: (_params, { signal, toolCall: { id } }) =>
            Effect.onInterrupt(Effect.never, () => Effect.sync(() => released.push(`${id} ${signal.aborted}`)))
        })
        const events = yield* ToolRunner.stream([call("c0", "waits"), call("c1", "waits")], [waits], { concurrency: 2 })
          .pipe(Stream.take(1), collect)

        assert.deepStrictEqual(told(events), ["c0 ToolExecutionStarted"])
        assert.sameMembers(released, ["c0 true", "c1 true"])
      }))

    it.effect("RSTR-17 stops the tools when its reader is interrupted", () =>
      Effect.gen(function*() {
        const started = yield* Deferred.make<void>()
        const stopped = yield* Deferred.make<void>()
        const waits = Tool.make("waits", {
          description: "Waits, and says when it is stopped",
          handler: () =>
            Effect.zipRight(Deferred.succeed(started, undefined), Effect.never).pipe(
              Effect.onInterrupt(() => Deferred.succeed(stopped, undefined))
            )
        })
        const fiber = yield* Effect.fork(collect(ToolRunner.stream([call("c0", "waits")], [waits])))
        yield* Deferred.await(started)
        const exit = yield* Fiber.interrupt(fiber)

        assert.strictEqual(Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause), true)
        assert.strictEqual(yield* Deferred.isDone(stopped), true)
      }))

    it.effect("tells how far a handler is, between its start and its end", () =>
      Effect.gen(function*() {
        const steps = Tool.make("steps", {
          description: "Reports progress",
          handler: (_params, { progress }) => Effect.as(Effect.forEach([1, 2], progress), "done")
        })
        const events = yield* collect(ToolRunner.stream([call("c0", "steps")], [steps]))

        assert.deepStrictEqual(told(events), [
          "c0 ToolExecutionStarted",
          "c0 ToolProgress",
          "c0 ToolProgress",
          "c0 ToolExecutionCompleted",
          "c0 ToolResultEncoded"
        ])
        assert.deepStrictEqual(events.flatMap((event) => event._tag === "ToolProgress" ? [event.value] : []), [1, 2])
      }))

    it.effect("tells that a call was skipped without saying that it started", () =>
      Effect.gen(function*() {
        const events = yield* collect(
          ToolRunner.stream([call("c0", "done"), call("c1", "hi")], [done, hi], { siblings: "interrupt" })
        )

        assert.deepStrictEqual(told(events), [
          "c0 ToolExecutionStarted",
          "c0 ToolExecutionCompleted",
          "c0 ToolHalt",
          "c1 ToolExecutionCompleted",
          "c1 ToolResultEncoded"
        ])
      }))

    it.effect("starts anew every time it is read", () =>
      Effect.gen(function*() {
        let runs = 0
        const count = Tool.make("count", { description: "Counts", handler: () => ++runs })
        const stream = ToolRunner.stream([call("c0", "count")], [count])
        assert.strictEqual(runs, 0)
        yield* collect(stream)
        yield* collect(stream)

        assert.strictEqual(runs, 2)
      }))
  })

  describe("fold", () => {
    it.effect("makes of the events of a stream what run gives", () =>
      Effect.gen(function*() {
        const manual = Tool.make("manual", { description: "The caller's", manual: true })
        const gated = Tool.make("gated", {
          description: "Waits for consent",
          needsApproval: true,
          handler: () => "ran"
        })
        const tools = [hi, fails, done, ask, manual, gated]
        const calls = tools.map(({ name }, i) => call(`c${i}`, name))
        const result = yield* ToolRunner.run(calls, tools)
        const events = yield* collect(ToolRunner.stream(calls, tools))

        assert.deepStrictEqual(ToolRunner.fold(calls, events), result)
      }))

    it.effect("makes what it can of a stream that was cut short", () =>
      Effect.gen(function*() {
        const calls = [call("c0", "hi"), call("c1", "done"), call("c2", "hi")]
        const events = yield* collect(ToolRunner.stream(calls, [hi, done], { concurrency: 1 }))
        const result = ToolRunner.fold(calls, events.slice(0, 5))

        assert.deepStrictEqual(result.messages.map(({ toolCallId }) => toolCallId), ["c0"])
        assert.deepStrictEqual(result.outcomes.map(({ toolCall }) => toolCall.id), ["c0", "c1"])
        assert.strictEqual(result.halt, undefined)
      }))
  })
})
