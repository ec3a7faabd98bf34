/**
 * Plays a timeline in a terminal, as it happened.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { BrokenPipe, Service } from "../stdio.ts"
import { hideCursor, Picture, showCursor, type Size } from "../terminal/picture.ts"
import type { Timeline } from "../timeline.ts"
import { type Options, turnViews } from "../timelineView.ts"
import { lengthOf, momentAt, upTo } from "./playback.ts"

const framePause = "50 millis"

/** Draws in place until the end, or an interruption, and leaves nothing behind. */
export const play = (
  timeline: Timeline,
  options: Options & { readonly speed: number; readonly size: Size },
  out: Service["out"]
): Effect.Effect<void, BrokenPipe> =>
  Effect.gen(function*() {
    const { size, speed } = options
    const drawing = new Picture()
    const length = lengthOf(timeline)
    const began = yield* Clock.currentTimeMillis

    const frames: Effect.Effect<void, BrokenPipe> = Effect.gen(function*() {
      const played = ((yield* Clock.currentTimeMillis) - began) * speed
      const lines = turnViews(upTo(timeline, momentAt(timeline, played)), timeline, options).flat()
      // The last things that happened are at the end.
      yield* out(drawing.draw([], lines.slice(1 - size.rows), size))
      if (played < length) yield* Effect.zipRight(Effect.sleep(framePause), frames)
    })

    yield* Effect.acquireUseRelease(
      out(hideCursor),
      () => frames,
      () => Effect.ignore(out(drawing.draw([], [], size) + showCursor))
    )
  })
