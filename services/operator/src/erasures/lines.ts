const LABEL_WIDTH = 12;

/** A line under its label. */
export const toLine = (label: string, text: string): string => `${label.padEnd(LABEL_WIDTH)}${text}`;

/** Lines under one label, which stands before the first. */
export const toLinesOf = (label: string, texts: readonly string[]): string[] =>
  texts.map((text, index) => toLine(index === 0 ? label : '', text));
