/**
 * What is legal in the options of a session runner, and what they come to.
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import type { RunnerOptions } from "../SessionRunner.ts"
import type { Issue } from "../ValidationError.ts"
import { issue, orThrow } from "./issues.ts"
import { describe, isPlainObject, show } from "./json.ts"
import { unknownOptions } from "./runOptions.ts"
import { positiveDuration } from "./toolOptions.ts"

/** In milliseconds. */
export interface RunnerSettings {
  readonly leaseDuration: number
  readonly wait: number
}

const finite = (duration: Duration.Duration | undefined): duration is Duration.Duration =>
  duration !== undefined && Duration.isFinite(duration)

const patience = (value: unknown): Duration.Duration | undefined =>
  typeof value === "number" && !(value >= 0)
    ? undefined
    : Option.getOrUndefined(Duration.decodeUnknown(value as Duration.DurationInput))

const runnerIssues = (given: unknown): ReadonlyArray<Issue> => {
  if (!isPlainObject(given)) {
    return [issue([], "invalid_type", `write options such as { wait: "5 seconds" }, not ${describe(given)}`)]
  }
  const { holder, leaseDuration, wait } = given
  return [
    ...unknownOptions(["holder", "leaseDuration", "wait"], given),
    ...(holder === undefined || (typeof holder === "string" && holder !== "")
      ? []
      : [issue(["holder"], "invalid_type", `write a name such as "web-1", not ${show(holder)}`)]),
    ...(leaseDuration === undefined || finite(positiveDuration(leaseDuration)) ? [] : [
      issue(
        ["leaseDuration"],
        "must_be_positive",
        `write a duration that ends, such as "30 seconds", not ${show(leaseDuration)}`
      )
    ]),
    ...(wait === undefined || patience(wait) !== undefined
      ? []
      : [issue(["wait"], "invalid_type", `write 0 or a duration such as "5 seconds", not ${show(wait)}`)])
  ]
}

/** Throws a `ValidationError` when an option does not fit. */
export const runnerSettings = (options: RunnerOptions): RunnerSettings => {
  orThrow("invalid_options", runnerIssues(options), undefined)
  const { leaseDuration = "30 seconds", wait = "10 seconds" } = options
  return { leaseDuration: Duration.toMillis(leaseDuration), wait: Duration.toMillis(wait) }
}
