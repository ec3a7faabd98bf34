/**
 * Runs a turn and shows it. Ctrl-C stops it; a second one does not wait until it has stopped.
 */
import type { ChatResult } from "@allm/core/ChatResult"
import type { Event } from "@allm/core/Event"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as Picture from "../terminal/picture.ts"
import { dim, type Service, Terminal } from "../terminal/terminal.ts"
import type { Notes } from "./notes.ts"
import { PlainView } from "./plainView.ts"
import { TurnView } from "./turnView.ts"

/** How a turn ended. */
export type Ended<E> =
  | { readonly _tag: "Completed"; readonly result: ChatResult | undefined; readonly millis: number }
  | { readonly _tag: "Failed"; readonly error: E; readonly millis: number }
  | { readonly _tag: "Interrupted"; readonly millis: number }
  /** The person did not wait until it had stopped. */
  | { readonly _tag: "Abandoned" }

/** What shows a turn while it runs. */
interface Show {
  readonly add: (event: Event, now: number) => Effect.Effect<void>
  readonly stopping: Effect.Effect<void>
  readonly end: Effect.Effect<void>
}

// Whoever is told to go does not wait longer for tools that do not stop.
const patience = "3 seconds"

export const run = <E, R>(
  events: Stream.Stream<Event, E, R>,
  notes: Notes
): Effect.Effect<Ended<E>, never, R | Terminal> =>
  Effect.scoped(
    Effect.gen(function*() {
      const terminal = yield* Terminal
      const began = yield* Clock.currentTimeMillis
      const show = yield* terminal.isLive ? drawn(terminal, notes, began) : written(terminal, notes)
      let result: ChatResult | undefined
      const reading = Stream.runForEach(events, (event) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          if (event._tag === "ChatCompleted") result = event.result
          return show.add(event, now)
        }))
      // Not a child: a tool that does not stop must not keep its parent from leaving.
      const fiber = yield* Effect.acquireRelease(Effect.forkDaemon(Effect.interruptible(reading)), Fiber.interruptFork)
      const exit = yield* Effect.onInterrupt(
        stoppable(fiber, terminal, show),
        () => Effect.ignore(Effect.timeout(Effect.disconnect(Effect.interruptible(Fiber.interrupt(fiber))), patience))
      )
      yield* show.end
      if (Option.isNone(exit)) return { _tag: "Abandoned" } as const
      const millis = (yield* Clock.currentTimeMillis) - began
      return yield* endOf(exit.value, result, millis)
    })
  )

/** Waits for the end; `None` when the person leaves before it. */
const stoppable = <E>(
  fiber: Fiber.RuntimeFiber<void, E>,
  terminal: Service,
  show: Show
): Effect.Effect<Option.Option<Exit.Exit<void, E>>> => {
  const next = Effect.raceFirst(Effect.asSome(Fiber.await(fiber)), Effect.as(terminal.interrupt, Option.none()))
  const stop = Effect.zipRight(show.stopping, Fiber.interruptFork(fiber))
  return Effect.filterOrElse(next, Option.isSome, () => Effect.zipRight(stop, next))
}

const endOf = <E>(
  exit: Exit.Exit<void, E>,
  result: ChatResult | undefined,
  millis: number
): Effect.Effect<Ended<E>> => {
  if (exit._tag === "Success") return Effect.succeed({ _tag: "Completed", result, millis })
  if (Cause.isInterruptedOnly(exit.cause)) return Effect.succeed({ _tag: "Interrupted", millis })
  return Option.match(Cause.failureOption(exit.cause), {
    onNone: () => Effect.die(Cause.squash(exit.cause)),
    onSome: (error) => Effect.succeed({ _tag: "Failed", error, millis })
  })
}

// Fast enough to look alive, slow enough to cost nothing.
const pace = Schedule.spaced("80 millis")

const drawn = (terminal: Service, notes: Notes, now: number) =>
  Effect.gen(function*() {
    const view = new TurnView(now)
    const picture = new Picture.Picture()
    const draw = Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const size = yield* terminal.size
      const typed = yield* terminal.typed
      for (const note of notes.take()) view.note(dim(note))
      const { live, settled } = view.frame(now, size, terminal.colour, typed)
      const text = picture.draw(settled, live, size)
      // Every time: whoever stops the process and lets it go on gets the cursor back in between.
      if (text !== "") yield* terminal.write(Picture.hideCursor + text)
    })
    const finish = Effect.gen(function*() {
      view.end(yield* Clock.currentTimeMillis)
      for (const note of notes.take()) view.note(dim(note))
      const size = yield* terminal.size
      const { settled } = view.frame(0, size, terminal.colour, "")
      yield* terminal.write(picture.draw(settled, [], size))
    })

    yield* Effect.addFinalizer(() => Effect.zipRight(finish, terminal.write(Picture.showCursor)))
    const ticking = yield* Effect.forkScoped(Effect.repeat(draw, pace))
    const show: Show = {
      add: (event, now) => Effect.sync(() => view.add(event, now)),
      stopping: Effect.sync(() => {
        view.isStopping = true
      }),
      end: Fiber.interrupt(ticking)
    }
    return show
  })

const written = (terminal: Service, notes: Notes) =>
  Effect.sync((): Show => {
    const view = new PlainView()
    const noted = () => view.lines(notes.take().map((note) => `note: ${note}`))
    const put = (text: string) => text === "" ? Effect.void : terminal.write(text)
    return {
      add: (event, now) => Effect.suspend(() => put(noted() + view.add(event, now))),
      stopping: Effect.suspend(() => put(view.lines(["! stopping; Ctrl-C again leaves at once"]))),
      end: Effect.suspend(() => put(noted() + view.newLine()))
    }
  })
