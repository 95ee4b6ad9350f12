// Shows the JSON of messages in a readable form.

/** Numbers keep their digits, because a double cannot represent all 64-bit integers. */
export function indent(json) {
  if (JSON.rawJSON === undefined) return json;
  try {
    const keepDigits = (_, value, { source }) => (typeof value === 'number' ? JSON.rawJSON(source) : value);
    return JSON.stringify(JSON.parse(json, keepDigits), null, 2);
  } catch {
    return json;
  }
}
