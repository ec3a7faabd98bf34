/**
 * The checks of a tool journal as tests.
 *
 * @since 0.1.0
 */
import type * as Check from "./Check.ts"
import { register } from "./internal/register.ts"
import { make, type Subject } from "./ToolJournalChecks.ts"

/**
 * How the suite of a tool journal is run.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends Check.Options {
  /** Tests with the time of the machine, as real databases need it, instead of a `TestClock`. Default false. */
  readonly live?: boolean | undefined
}

/**
 * Adds a test for every promise of a tool journal.
 *
 * @since 0.1.0
 * @category testing
 */
export const run = <E>(name: string, subject: Subject<E>, options: Options = {}): void =>
  register(name, make(subject, options), options)
