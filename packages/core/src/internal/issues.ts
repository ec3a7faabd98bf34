/**
 * Collecting problems, and the one place that throws them.
 */
import * as Either from "effect/Either"
import { type Issue, type Reason, ValidationError } from "../ValidationError.ts"

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
