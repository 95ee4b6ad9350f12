/** A string literal of ClickHouse. Only the quote and the backslash need an escape. */
export const quote = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;

/** A string literal of arbitrary bytes. */
export const quoteBytes = (bytes: Buffer) => `'${bytes.toString('hex').replace(/../g, '\\x$&')}'`;
