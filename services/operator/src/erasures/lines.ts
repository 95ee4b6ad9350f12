const LABEL_WIDTH = 12;

/** A line with its label. */
export const toLine = (label: string, text: string): string => `${label.padEnd(LABEL_WIDTH)}${text}`;

/** Lines with one label, shown before the first. */
export const toLinesOf = (label: string, texts: readonly string[]): string[] =>
  texts.map((text, index) => toLine(index === 0 ? label : '', text));
