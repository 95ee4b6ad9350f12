/** Bytes that end a literal, or begin an escape in it, are escaped; every other stands for itself. */
export const quote = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;

/** Of bytes that are no text. */
export const quoteBytes = (bytes: Buffer) => `'${bytes.toString('hex').replace(/../g, '\\x$&')}'`;
