/**
 * Opening a chat: its input read, its options decided, its ground laid.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as HashMap from "effect/HashMap"
import * as Random from "effect/Random"
import type { Options } from "../Allm.ts"
import { Engine } from "../Engine.ts"
import type { Event } from "../Event.ts"
import { resolve } from "./callSettings.ts"
import { Chat, type Failure } from "./chat.ts"
import { Ground } from "./flow.ts"
import type { Sink } from "./handover.ts"
import { readInput } from "./input.ts"
import type { Checkpoint } from "./modelCall.ts"

/** Reads the input and the options, and runs something with everything decided. */
export const withChat = <A, E, R>(
  input: unknown,
  options: Options,
  sink: Sink<Event> | undefined,
  use: (chat: Chat) => Effect.Effect<A, Failure | E, R>,
  checkpoint?: Checkpoint
): Effect.Effect<A, Failure | E, Engine | R> =>
  Effect.withFiberRuntime<A, Failure | E, Engine | R>((fiber, { runtimeFlags }) => {
    const engine = Context.unsafeGet(fiber.currentContext, Engine)
    const start = readInput(input)
    if (Either.isLeft(start)) return start.left
    return Effect.flatMap(
      options?.requestId === undefined ? makeId : Effect.succeed(options.requestId),
      (requestId) => {
        const call = resolve(engine, start.right, options, requestId, fiber.currentContext)
        if (Either.isLeft(call)) return call.left
        const ground = new Ground(fiber, runtimeFlags, annotated(fiber, requestId, options.sessionId))
        const surroundings = { call: call.right, requestId, clock: ground.clock, sink, checkpoint }
        return use(new Chat(surroundings, ground, start.right.thread))
      }
    )
  })

/** Whatever is logged on the way carries the ids of the call. */
const annotated = (
  fiber: Fiber.RuntimeFiber<unknown, unknown>,
  requestId: string,
  sessionId: string | undefined
): FiberRefs.FiberRefs => {
  const own = HashMap.set(fiber.getFiberRef(FiberRef.currentLogAnnotations), "requestId", requestId)
  return FiberRefs.updateAs(fiber.getFiberRefs(), {
    fiberId: fiber.id(),
    fiberRef: FiberRef.currentLogAnnotations,
    value: sessionId === undefined ? own : HashMap.set(own, "sessionId", sessionId)
  })
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

/** 22 letters, as many as 16 random bytes have in base64. */
const makeId: Effect.Effect<string> = Effect.flatMap(
  Random.next,
  (first) =>
    Effect.zipWith(Random.next, Random.next, (second, third) => spell(first, 7) + spell(second, 7) + spell(third, 8))
)

const spell = (random: number, length: number): string => {
  let text = ""
  let rest = random
  for (let i = 0; i < length; i++) {
    rest *= 64
    const digit = Math.floor(rest)
    text += letters[digit]
    rest -= digit
  }
  return text
}
