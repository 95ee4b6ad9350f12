import type { Breach, Rule } from './tree.ts';

/** Longer than this is read in pieces. */
const FILE_LINES_MAX = 300;
/** One screen. */
const FUNCTION_LINES_MAX = 50;
/** A fourth parameter makes callers count. */
const PARAMETERS_MAX = 3;
/**
 * Configuration, adapters, run: nothing else belongs there. Two screens, since each store brings its address, its
 * security and who hears of its faults to every client that is opened.
 */
const MAIN_LINES_MAX = 120;

/** Files, functions and parameter lists stay short enough to be read at once. */
export const checkSizes: Rule = ({ files }) =>
  files.flatMap(({ path, text, functions }) => {
    const breach = (found: string, mend: string): Breach => ({ rule: 'sizes', path, found, mend });
    const breaches: Breach[] = [];
    const lines = text.replace(/\n$/, '').split('\n').length;
    const isMain = /^services\/[^/]+\/src\/main\.ts$/.test(path);
    if (lines > FILE_LINES_MAX)
      breaches.push(breach(`${lines} lines`, `split it by subject: at most ${FILE_LINES_MAX} lines a file`));
    if (isMain && lines > MAIN_LINES_MAX)
      breaches.push(
        breach(
          `${lines} lines`,
          `main.ts is configuration, adapters and run: at most ${MAIN_LINES_MAX} lines; assembly goes to app.ts or pipeline.ts`,
        ),
      );
    for (const part of functions) {
      const name = `function ${part.name || 'without a name'} at line ${part.line}`;
      if (part.lines > FUNCTION_LINES_MAX && !part.suite)
        breaches.push(
          breach(
            `${name} has ${part.lines} lines`,
            `name its parts as functions of their own: at most ${FUNCTION_LINES_MAX} lines each`,
          ),
        );
      if (part.parameters > PARAMETERS_MAX && !part.callback)
        breaches.push(
          breach(`${name} has ${part.parameters} parameters`, `more than ${PARAMETERS_MAX} become one options object`),
        );
    }
    return breaches;
  });
