/**
 * Statements by which an erasure is seen to be at a step, in the order in which one comes to them that begins again at its
 * fences each time. Their first lines say what they are; others have it in their body.
 */
export const MOMENTS = {
  'resolved, not noted': /INSERT INTO erasure_progress/,
  'noted, not fenced': /INSERT INTO erasure_fences/,
  'forgotten in Redis': /INSERT INTO erasure_progress/,
  'about to sweep': /INSERT INTO erasure_targets/,
  'swept, without a receipt': /INSERT INTO erasure_receipts/,
} as const;
