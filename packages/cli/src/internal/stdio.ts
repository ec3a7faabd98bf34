/**
 * The standard streams of a command that draws nothing: what it says for programs, what it says for people, and what is
 * piped into it.
 */
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** Nobody reads the output any more: `| head -1` has seen enough. */
export class BrokenPipe extends Data.TaggedError("BrokenPipe")<{ readonly message: string }> {}

/** What is piped in could not be read. */
export class InputFailed extends Data.TaggedError("InputFailed")<{ readonly message: string }> {}

export interface Service {
  /** Waits until the reader has taken it. */
  readonly out: (text: string) => Effect.Effect<void, BrokenPipe>
  /** Says something to the person, if there is one. */
  readonly error: (text: string) => Effect.Effect<void>
  /** What is piped in, empty when it is typed. */
  readonly piped: Effect.Effect<string, InputFailed>
  /** Whether a person sees the output. */
  readonly isSeen: boolean
  /** Whether a person sees it and types. */
  readonly isInteractive: boolean
  readonly width: number
  readonly colour: boolean
}

// The error is told to whoever writes; without a listener it would end the process.
const unheard = (): void => {}

const listened = (stream: NodeJS.WriteStream): NodeJS.WriteStream =>
  stream.listeners("error").includes(unheard) ? stream : stream.on("error", unheard)

const write = (stream: NodeJS.WriteStream, text: string): Effect.Effect<void, BrokenPipe> =>
  text === "" ? Effect.void : Effect.async((resume) => {
    listened(stream).write(text, (error) => {
      resume(error ? new BrokenPipe({ message: error.message }) : Effect.void)
    })
  })

const read = (stream: NodeJS.ReadStream): Effect.Effect<string, InputFailed> =>
  Effect.async((resume) => {
    const chunks: Array<Buffer> = []
    const take = (chunk: Buffer): void => {
      chunks.push(chunk)
    }
    const end = (): void => resume(Effect.sync(() => Buffer.concat(chunks).toString("utf8")))
    const fail = (error: Error): void =>
      resume(new InputFailed({ message: `the input cannot be read: ${error.message}` }))
    stream.on("data", take).once("end", end).once("error", fail)
    return Effect.sync(() => {
      stream.off("data", take).off("end", end).off("error", fail).pause()
    })
  })

const ofProcess = (): Service => {
  const { env, stderr, stdin, stdout } = process
  const isSeen = stdout.isTTY === true
  return {
    out: (text) => write(stdout, text),
    error: (text) => Effect.ignore(write(stderr, text)),
    // Of a stream that is closed there is nothing to read.
    piped: Effect.suspend(() => stdin.isTTY === true || !stdin.readable ? Effect.succeed("") : read(stdin)),
    isSeen,
    isInteractive: isSeen && stdin.isTTY === true,
    width: isSeen ? Math.max(20, stdout.columns || 80) : Infinity,
    colour: isSeen && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb"
  }
}

/** The streams in use: those of the process, unless a test brings its own. */
export class Stdio extends Context.Reference<Stdio>()<"@allm/cli/internal/stdio/Stdio", Service>(
  "@allm/cli/internal/stdio/Stdio",
  { defaultValue: ofProcess }
) {}

/** Writes lines for programs and files. */
export const print = (...lines: ReadonlyArray<string>): Effect.Effect<void, BrokenPipe> =>
  Effect.flatMap(Stdio, ({ out }) => out(lines.map((line) => `${line}\n`).join("")))

/** Tells the person something beside the output. */
export const tell = (...lines: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.flatMap(Stdio, ({ error }) => error(lines.map((line) => `${line}\n`).join("")))

/** A value as a line of NDJSON; what has no JSON form is a mistake of this command. */
export const jsonLine = <A, I>(schema: Schema.Schema<A, I>): (value: A) => Effect.Effect<string> => {
  const encode = Schema.encode(Schema.parseJson(schema))
  return (value) => Effect.orDie(encode(value))
}
