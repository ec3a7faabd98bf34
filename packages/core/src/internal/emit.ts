/**
 * How an adapter's events get in: as an Effect, which is what adapters are written with, or directly, for the reader of an
 * async iterable that would otherwise need a fiber per read.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { AdapterError } from "../AdapterError.ts"
import type { AdapterEvent } from "../Event.ts"
import { roomIn, type Sink } from "./handover.ts"

export type Emit = (events: ReadonlyArray<AdapterEvent>) => Effect.Effect<void>

/** What takes events. */
export interface Intake {
  readonly accept: (events: ReadonlyArray<AdapterEvent>) => void
  /** Where they go on to, if anywhere: it may be full. */
  readonly sink: Sink<never> | undefined
}

/** An emit of our own knows where its events go. */
interface OwnEmit extends Emit {
  intake?: Intake
  wantsRaw?: boolean
}

/** Marks an emit as one for which the untouched chunks of the provider are worth their while. */
export const withRaw = (emit: Emit, wantsRaw: boolean): Emit => {
  if (wantsRaw) (emit as OwnEmit).wantsRaw = true
  return emit
}

export const wantsRaw = (emit: Emit): boolean => (emit as OwnEmit).wantsRaw === true

export const emitTo = (intake: Intake): Emit => {
  const emit: OwnEmit = (events) =>
    Effect.suspend(() => {
      intake.accept(events)
      return intake.sink === undefined || intake.sink.hasRoom ? Effect.void : roomIn(intake.sink)
    })
  emit.intake = intake
  return emit
}

export const emitInto = (sink: Sink<AdapterEvent>): Emit =>
  emitTo({
    accept: (events) => {
      for (const event of events) sink.push(event)
    },
    sink
  })

/** Reads an async iterable to its end. An emit that is somebody's own is run for every read. */
export const readInto = (
  iterate: (signal: AbortSignal) => AsyncIterable<ReadonlyArray<AdapterEvent>>,
  emit: Emit,
  onError: (error: unknown) => AdapterError
): Effect.Effect<void, AdapterError> => {
  const { intake } = emit as OwnEmit
  return intake === undefined ? readBy(iterate, emit, onError) : readDirectly(iterate, intake, onError)
}

const readBy = (
  iterate: (signal: AbortSignal) => AsyncIterable<ReadonlyArray<AdapterEvent>>,
  emit: Emit,
  onError: (error: unknown) => AdapterError
): Effect.Effect<void, AdapterError> =>
  Effect.acquireUseRelease(
    Effect.sync(() => new AbortController()),
    ({ signal }) =>
      Effect.flatMap(
        Effect.try({ try: () => iterate(signal)[Symbol.asyncIterator](), catch: onError }),
        (iterator) => {
          const read: Effect.Effect<void, AdapterError> = Effect.flatMap(
            Effect.tryPromise({ try: () => iterator.next(), catch: onError }),
            (result) => result.done === true ? Effect.void : Effect.zipRight(emit(result.value), read)
          )
          return Effect.ensuring(read, dismiss(iterator))
        }
      ),
    (controller) => Effect.sync(() => controller.abort())
  )

// A generator that waits inside cannot be told to return; the signal is what it should listen to.
const dismiss = (iterator: AsyncIterator<unknown>): Effect.Effect<void> =>
  Effect.sync(() => {
    if (iterator.return !== undefined) iterator.return().then(undefined, () => {})
  })

const readDirectly = (
  iterate: (signal: AbortSignal) => AsyncIterable<ReadonlyArray<AdapterEvent>>,
  intake: Intake,
  onError: (error: unknown) => AdapterError
): Effect.Effect<void, AdapterError> =>
  Effect.async((resume, signal) => {
    const failed = (error: unknown): void => {
      if (!signal.aborted) resume(Effect.suspend(() => Effect.fail(onError(error))))
    }
    const opened = Either.try({ try: () => iterate(signal)[Symbol.asyncIterator](), catch: (error) => error })
    if (Either.isLeft(opened)) return failed(opened.left)
    const iterator = opened.right
    const read = (result: IteratorResult<ReadonlyArray<AdapterEvent>>): void => {
      if (signal.aborted) return
      try {
        if (result.done === true) return resume(Effect.void)
        intake.accept(result.value)
      } catch (error) {
        return failed(error)
      }
      if (intake.sink === undefined || intake.sink.hasRoom) next()
      else intake.sink.onRoom(next)
    }
    const next = (): void => {
      try {
        if (!signal.aborted) iterator.next().then(read, failed)
      } catch (error) {
        failed(error)
      }
    }
    next()
    return dismiss(iterator)
  })
