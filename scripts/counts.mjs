// What the tools report, as `{ passed, failed }`. A tool that exits non-zero never counts as all passed.
import { stripVTControlCharacters } from "node:util"

/** Vitest's JSON report; empty or cut off when Vitest crashed. */
export function countVitest(json, code) {
  const report = parse(json)
  // A file that cannot be loaded has no failed test, but it did fail.
  const brokenFiles = report.testResults.filter((file) =>
    file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed")
  )
  return settle(report.numPassedTests, report.numFailedTests + brokenFiles.length, code)
}

function parse(json) {
  try {
    return JSON.parse(json)
  } catch {
    return { numPassedTests: 0, numFailedTests: 0, testResults: [] }
  }
}

/** The line "Tests:  1 failed, 3 passed, 4 total" of tstyche's summary. */
export function countTstyche(output, code) {
  const line = /^Tests:.*$/m.exec(stripVTControlCharacters(output))?.[0] ?? ""
  const count = (word) => Number(new RegExp(`(\\d+) ${word}`).exec(line)?.[1] ?? 0)
  return settle(count("passed"), count("failed"), code)
}

/** docgen says how many examples it found, then runs them all as one program: all passed, or one failed. */
export function countDocgen(output, code) {
  const found = Number(/(\d+) example\(s\) found/.exec(stripVTControlCharacters(output))?.[1] ?? 0)
  return code === 0 ? { passed: found, failed: 0 } : { passed: 0, failed: 1 }
}

/** Nothing counted at all is a failure too: the tests were not found. */
function settle(passed, failed, code) {
  const silent = failed === 0 && (code !== 0 || passed === 0)
  return { passed, failed: silent ? 1 : failed }
}
