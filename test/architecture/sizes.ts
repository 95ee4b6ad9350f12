import type { Breach, Rule } from './tree.ts';

/** A longer file cannot be read at once. */
const FILE_LINES_MAX = 500;
/** About one screen. */
const FUNCTION_LINES_MAX = 60;
/** With a fifth parameter, callers must count positions. */
const PARAMETERS_MAX = 4;

/** Files, functions and parameter lists must be short enough to be read at once. */
export const checkSizes: Rule = ({ files }) =>
  files.flatMap(({ path, text, functions }) => {
    const breach = (found: string, mend: string): Breach => ({ rule: 'sizes', path, found, mend });
    const breaches: Breach[] = [];
    const lines = text.replace(/\n$/, '').split('\n').length;
    if (lines > FILE_LINES_MAX)
      breaches.push(breach(`${lines} lines`, `split it by subject: at most ${FILE_LINES_MAX} lines a file`));
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
