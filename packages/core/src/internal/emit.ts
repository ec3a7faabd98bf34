/**
 * How an adapter's events get in: as an Effect, which is what adapters are written with, or directly, from promises and async
 * iterables, which need no fiber.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import type { AdapterError } from "../AdapterError.ts"
import type { AdapterEvent } from "../Event.ts"
import type { Request } from "../Request.ts"
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

/**
 * A model that is asked without a fiber: it calls back when it is done. Gives the way to stop it, after which it does not
 * call back.
 */
export type Direct = (request: Request, intake: Intake, done: Done) => () => void

type Done = (exit: Exit.Exit<void, AdapterError>) => void

type Generate = (request: Request, emit: Emit) => Effect.Effect<void, AdapterError>

interface DirectGenerate extends Generate {
  direct?: Direct
}

export const intakeOf = (emit: Emit): Intake | undefined => (emit as OwnEmit).intake

export const directOf = (generate: Generate): Direct | undefined => (generate as DirectGenerate).direct

/** The method of an adapter that can do without a fiber. `byEffect` is for an emit that is somebody's own. */
const directly = (direct: Direct, byEffect: Generate): Generate => {
  const generate: DirectGenerate = (request, emit) => {
    const intake = intakeOf(emit)
    if (intake === undefined) return byEffect(request, emit)
    return Effect.async((resume) => {
      const stop = direct(request, intake, resume)
      return Effect.sync(stop)
    })
  }
  generate.direct = direct
  return generate
}

type Read = ReadonlyArray<AdapterEvent>
type OnError = (error: unknown) => AdapterError

const named = (error: unknown, onError: OnError): Exit.Exit<never, AdapterError> => {
  try {
    return Exit.fail(onError(error))
  } catch (defect) {
    return Exit.die(defect)
  }
}

/** Made when it is asked for: most functions never look at it. */
export class Cancellation {
  private controller: AbortController | undefined
  private isAborted = false

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController()
      if (this.isAborted) this.controller.abort()
    }
    return this.controller.signal
  }

  abort(): void {
    this.isAborted = true
    this.controller?.abort()
  }
}

/** Asks for a promise of all events. */
export const promised = (
  ask: (request: Request, context: Cancellation) => PromiseLike<Read>,
  onError: OnError
): Generate =>
  directly(
    (request, { accept }, done) => {
      const cancellation = new Cancellation()
      let isOver = false
      const end: Done = (exit) => {
        if (isOver) return
        isOver = true
        done(exit)
      }
      const failed = (error: unknown): void => end(named(error, onError))
      const came = (events: Read): void => {
        if (isOver) return
        try {
          accept(events)
        } catch (error) {
          return failed(error)
        }
        end(Exit.void)
      }
      try {
        ask(request, cancellation).then(came, failed)
      } catch (error) {
        failed(error)
      }
      return () => {
        isOver = true
        cancellation.abort()
      }
    },
    (request, emit) =>
      Effect.acquireUseRelease(
        Effect.sync(() => new Cancellation()),
        (cancellation) =>
          Effect.flatMap(
            Effect.tryPromise({ try: () => Promise.resolve(ask(request, cancellation)), catch: onError }),
            emit
          ),
        (cancellation) => Effect.sync(() => cancellation.abort())
      )
  )

/** Reads an async iterable to its end. */
export const iterated = (
  iterate: (request: Request, signal: AbortSignal) => AsyncIterable<Read>,
  onError: OnError
): Generate =>
  directly(
    (request, intake, done) => readDirectly((signal) => iterate(request, signal), intake, onError, done),
    (request, emit) => readBy((signal) => iterate(request, signal), emit, onError)
  )

const readBy = (
  iterate: (signal: AbortSignal) => AsyncIterable<Read>,
  emit: Emit,
  onError: OnError
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
          return Effect.ensuring(read, Effect.sync(() => dismiss(iterator)))
        }
      ),
    (controller) => Effect.sync(() => controller.abort())
  )

// A generator that waits inside cannot be told to return; the signal is what it should listen to.
const dismiss = (iterator: AsyncIterator<unknown>): void => {
  if (iterator.return !== undefined) iterator.return().then(undefined, () => {})
}

const readDirectly = (
  iterate: (signal: AbortSignal) => AsyncIterable<Read>,
  intake: Intake,
  onError: OnError,
  done: Done
): () => void => {
  const controller = new AbortController()
  let isOver = false
  const end: Done = (exit) => {
    if (isOver) return
    isOver = true
    done(exit)
  }
  const failed = (error: unknown): void => end(named(error, onError))
  const opened = Either.try({ try: () => iterate(controller.signal)[Symbol.asyncIterator](), catch: (error) => error })
  if (Either.isLeft(opened)) {
    failed(opened.left)
    return () => {}
  }
  const iterator = opened.right
  const read = (result: IteratorResult<Read>): void => {
    if (isOver) return
    try {
      if (result.done === true) return end(Exit.void)
      intake.accept(result.value)
    } catch (error) {
      return failed(error)
    }
    if (intake.sink === undefined || intake.sink.hasRoom) next()
    else intake.sink.onRoom(next)
  }
  const next = (): void => {
    try {
      if (!isOver) iterator.next().then(read, failed)
    } catch (error) {
      failed(error)
    }
  }
  next()
  return () => {
    isOver = true
    controller.abort()
    dismiss(iterator)
  }
}
