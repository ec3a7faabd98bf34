import { Adapter, Engine, Fake, Session, SessionRunner, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, TestClock } from "effect"
import { type Around, asks, call, historyProblems, said, says, type World, world } from "./RunnerWorld.ts"

const names = ["pay", "mail", "book", "put", "look"] as const
const replays: { readonly [name: string]: Tool.Replay } = { put: "idempotent", look: "readonly" }
const isReplayable = (name: string) => replays[name] !== undefined

/** What the processes do to the world, and where one of them dies. */
class Stage {
  readonly traces: Array<string> = []
  readonly models: Array<number> = []
  steps = 0
  private isDead = false
  private readonly death: number

  constructor(death = Infinity) {
    this.death = death
  }

  /** Dies before a step or after it, that is, before the process hears of it. */
  readonly around: Around = (_step, work) => Effect.zipRight(this.step, Effect.zipLeft(work, this.step))

  private readonly step = Effect.suspend(() => {
    this.steps++
    if (this.steps >= this.death) this.isDead = true
    return this.isDead ? Effect.never : Effect.void
  })

  get isOver(): boolean {
    return this.isDead
  }

  /** The model of the process, and its tools: two turns with five calls each, whose ids are the same. */
  engine(around: Around) {
    const tools = names.map((name) =>
      Tool.make(name, {
        description: "Leaves a trace",
        replay: replays[name] ?? "never",
        handler: (_params, { toolCall }) =>
          around(
            "tool",
            Effect.sync(() => {
              this.traces.push(`${name} ${(toolCall.arguments as { readonly turn: number }).turn}`)
              return `${name} done`
            })
          )
      })
    )
    const adapter = Layer.effect(
      Adapter.Adapter,
      Effect.map(Adapter.Adapter, (inner) =>
        Adapter.make((request, emit) =>
          around(
            "model",
            Effect.zipRight(
              Effect.sync(() => this.models.push(request.messages.length)),
              inner.generate(request, emit)
            )
          )
        ))
    )
    const model = Fake.layer({
      respond: ({ messages }) => {
        const turn = messages.filter(({ role }) => role === "assistant").length + 1
        return turn <= 2 ? asks(...names.map((name, n) => call(`call_${n}`, name, { turn }))) : says("done")
      }
    })
    return Engine.layer({ tools }).pipe(Layer.provide(adapter), Layer.provide(model))
  }
}

const alive: Around = (_step, work) => work

const started = (shared: World, stage: Stage) =>
  SessionRunner.start("s1", "hi").pipe(
    Effect.provide(Layer.merge(shared.process({ around: stage.around, holder: "first" }), stage.engine(stage.around)))
  )

const resumed = (shared: World, stage: Stage) =>
  Effect.catchTag(SessionRunner.resume("s1"), "NotFound", () => SessionRunner.start("s1", "hi")).pipe(
    Effect.provide(Layer.merge(shared.process({ holder: "second" }), stage.engine(alive)))
  )

/** The calls of which the journal knows how they ended. */
const settledIn = (shared: World): ReadonlySet<string> => {
  const settled = new Set(shared.entries.filter((entry) => "outcome" in entry).map(({ digest }) => digest))
  return new Set(
    [1, 2].flatMap((turn) =>
      names.filter((name) => settled.has(Session.digest({ id: "", name, arguments: { turn }, metadata: {} })))
        .map((name) => `${name} ${turn}`)
    )
  )
}

const quietly = Effect.provide(Logger.remove(Logger.defaultLogger))

describe("SessionRunner, a process that dies", () => {
  it.effect(
    "at any point: nothing runs twice that must not, nothing that ended is lost, the loop comes to its end",
    () =>
      Effect.gen(function*() {
        const whole = new Stage()
        yield* started(yield* world, whole)
        assert.deepStrictEqual(whole.models, [1, 7, 13])
        assert.isAbove(whole.steps, 2 * (5 * 3 * 2 + 5 + 5))

        let unknownSomewhere = 0
        let replayedSomewhere = 0
        for (let death = 1; death <= whole.steps; death++) {
          const shared = yield* world
          const stage = new Stage(death)
          const corpse = yield* Effect.forkDaemon(started(shared, stage))
          while (!stage.isOver) yield* Effect.yieldNow()
          yield* TestClock.adjust("31 seconds")
          assert.isNull(corpse.unsafePoll())
          const before = [...stage.traces]
          const settled = settledIn(shared)

          const { session } = yield* resumed(shared, stage)
          const again = yield* resumed(shared, stage)

          const place = `killed at step ${death}`
          assert.strictEqual(session.status, "completed", place)
          assert.deepStrictEqual(again, { session, result: undefined }, place)
          assert.deepStrictEqual(historyProblems(session), [], place)
          assert.deepStrictEqual(
            said(session).map(([role]) => role),
            ["user", ...[1, 2].flatMap(() => ["assistant", ...names.map(() => "tool")]), "assistant"],
            place
          )
          // The answer may be asked for once more than it was heard.
          assert.isAtMost(stage.models.length, 4, place)
          const results = said(session).filter(([role]) => role === "tool").map(([, content]) => content!)
          for (const turn of [1, 2]) {
            names.forEach((name, n) => {
              const ran = stage.traces.filter((trace) => trace === `${name} ${turn}`).length
              const content = results[(turn - 1) * 5 + n]!
              const isUnknown = content.includes("outcome_unknown")
              if (isUnknown) unknownSomewhere++
              else assert.strictEqual(content, `${name} done`, place)
              if (isReplayable(name)) {
                assert.isFalse(isUnknown, place)
                assert.isAtLeast(ran, 1, place)
                assert.isAtMost(ran, 2, place)
              } else {
                assert.isAtMost(ran, 1, `${name} ran twice when ${place}`)
                assert.isTrue(isUnknown || ran === 1, place)
              }
              if (settled.has(`${name} ${turn}`)) {
                replayedSomewhere++
                assert.strictEqual(content, `${name} done`, place)
                assert.strictEqual(ran, before.filter((trace) => trace === `${name} ${turn}`).length, place)
              }
            })
          }
          assert.deepStrictEqual(shared.entries, [], place)
        }
        // Otherwise nothing of the above was put to the test.
        assert.isAbove(unknownSomewhere, 0)
        assert.isAbove(replayedSomewhere, 0)
      }).pipe(quietly),
    60_000
  )
})
