/**
 * Collecting problems, and the one place that throws them.
 */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { type Issue, type Reason, ValidationError } from "../ValidationError.ts"
import { formatPath, isPlainObject, show } from "./json.ts"

export type IssuePath = Issue["path"]

export const issue = (path: IssuePath, code: string, message: string): Issue => ({ path, code, message })

/** The value when nothing was found, one error with everything otherwise. */
export const toEither = <A>(
  reason: Reason,
  issues: ReadonlyArray<Issue>,
  value: A
): Either.Either<A, ValidationError> => {
  const [first, ...rest] = issues
  return first === undefined
    ? Either.right(value)
    : Either.left(new ValidationError({ reason, issues: [first, ...rest] }))
}

/** Decodes what the checks let pass. What only the schema refuses is reported in its words. */
export const decode = <A, I>(
  reason: Reason,
  schema: Schema.Schema<A, I>,
  issues: ReadonlyArray<Issue>,
  input: unknown
): Either.Either<A, ValidationError> =>
  Either.flatMap(toEither(reason, issues, input), (value) => {
    const decoded = Schema.decodeUnknownEither(schema, { errors: "all" })(withoutUndefined(value))
    return Either.isRight(decoded)
      ? Either.right(decoded.right)
      : toEither(
        reason,
        firstPerPath(ParseResult.ArrayFormatter.formatErrorSync(decoded.left).map(fromParse)),
        value as A
      )
  })

const fromParse = (found: ParseResult.ArrayFormatterIssue): Issue =>
  issue(found.path.map((key) => typeof key === "symbol" ? String(key) : key), "invalid_type", found.message)

// An optional field fails twice: as what it is, and as undefined.
const firstPerPath = (issues: ReadonlyArray<Issue>): ReadonlyArray<Issue> => {
  const seen = new Set<string>()
  return issues.filter(({ path }) => {
    const place = formatPath(path)
    const isNew = !seen.has(place)
    seen.add(place)
    return isNew
  })
}

// An absent member and an undefined one are the same JSON.
const withoutUndefined = (value: unknown): unknown =>
  isPlainObject(value) ? Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) : value

/** For constructors: a wrong construction stops the program where it is written. */
export const orThrow = <A>(reason: Reason, issues: ReadonlyArray<Issue>, value: A): A =>
  Either.getOrThrowWith(toEither(reason, issues, value), (error) => error)

/** The problems of every member of a list, each under its place in it. */
export const each = (
  field: string,
  members: ReadonlyArray<unknown>,
  validate: (member: unknown) => Either.Either<unknown, ValidationError>
): ReadonlyArray<Issue> =>
  members.flatMap((member, index) =>
    Either.match(validate(member), {
      onLeft: (error) => error.issues.map((found) => ({ ...found, path: [field, index, ...found.path] })),
      onRight: () => []
    })
  )

/** A field that, if there, fits a schema. */
export const matches = <A, I>(
  field: string,
  schema: Schema.Schema<A, I>,
  example: string,
  value: unknown
): ReadonlyArray<Issue> =>
  value === undefined || Either.isRight(Schema.decodeUnknownEither(schema)(value))
    ? []
    : [issue([field], "invalid_shape", `write ${example}, not ${show(value)}`)]

/** What a schema refuses, as one sentence that names the place and leaves out the schema. */
export const parseErrorInWords = (error: ParseResult.ParseError): string =>
  inWords(firstPerPath(ParseResult.ArrayFormatter.formatErrorSync(error).map(fromParse)))

/** Problems as one sentence. */
export const inWords = (issues: ReadonlyArray<Issue>): string =>
  issues.map((found) => `${formatPath(found.path)}: ${found.message}`).join("; ")
