// What the server answers to `dogwood.test`, and how it is shown.

export interface Failure {
  file: string;
  test?: string;
  /** Which event of the test, in words. */
  at?: string;
  message: string;
  /** Why it was decided so, a line each. */
  why?: string[];
}

export interface Summary {
  tests: number;
  passed: number;
  failed: number;
  failures: Failure[];
}

export function isSummary(value: unknown): value is Summary {
  const summary = value as Partial<Summary> | null;
  return (
    typeof summary === "object" &&
    summary !== null &&
    typeof summary.tests === "number" &&
    typeof summary.failed === "number" &&
    Array.isArray(summary.failures)
  );
}

const counted = (n: number, one: string): string => `${n} ${one}${n === 1 ? "" : "s"}`;

/** One line for the status of a run. */
export function headline(summary: Summary): string {
  const broken = summary.failures.filter((failure) => failure.test === undefined).length;
  if (broken > 0) {
    return "Tests could not be run.";
  }
  if (summary.tests === 0) {
    return "There are no tests for this policy: a file with its name and the ending .dwtest.toml has them.";
  }
  return summary.failed === 0
    ? `${counted(summary.tests, "test")} passed.`
    : `${summary.failed} of ${counted(summary.tests, "test")} failed.`;
}

/** Each failure with its file, as a text to read. */
export function report(summary: Summary, name: (file: string) => string): string {
  const lines = [headline(summary)];
  for (const failure of summary.failures) {
    const heading = failure.test === undefined ? name(failure.file) : `${name(failure.file)}: ${failure.test}`;
    lines.push("", heading);
    const at = failure.at === undefined ? [] : [failure.at];
    for (const text of [...at, failure.message, ...(failure.why ?? [])]) {
      lines.push(...text.split("\n").map((line) => `  ${line}`.trimEnd()));
    }
  }
  return lines.join("\n");
}
