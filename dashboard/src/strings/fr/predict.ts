import { formatPrecise, formatShare } from '../../lib/amounts'
import type * as en from '../predict'

export const predict: typeof en.predict = {
  open: 'Essayer le modèle…',
  title: 'Essayer le modèle',
  means: (size) =>
    `Le modèle tourne dans ce navigateur. La première utilisation charge le modèle et onnxruntime-web (${size}). Le modèle est celui de ce serveur : pour en être sûr, dérivez-le vous-même, comme ci-dessous, et utilisez consilium predict.`,
  stays: 'Vos valeurs restent dans ce navigateur : rien n’en est envoyé ni conservé.',
  eightBits:
    'Ces nombres viennent du fichier aux poids de 8 bits. Ils peuvent différer un peu de ceux de consilium predict.',
  notForPatients: 'N’utilisez pas un modèle seul pour des décisions sur des personnes.',
  range: (name, min, max) => `${name} (${min} à ${max})`,
  missing: 'manquant',
  notNumber: 'Écrivez un nombre avec un point décimal, ou laissez vide s’il manque.',
  outside: (min, max) => `Le modèle connaît les valeurs de ${min} à ${max}.`,
  codeUnknown: (codes) => `Le modèle connaît les codes ${codes.join(', ')}.`,
  valueUnknown: (names) => `Le modèle connaît les valeurs ${names.join(', ')}.`,
  table: 'Remplir à partir d’un tableau : CSV, colonnes nommées comme ici',
  pasted: 'Ou collez-le, avec sa première ligne',
  row: 'Ligne',
  ofRows: (rows) => `sur ${rows}`,
  lacks: (names) => `Il manque au tableau ${names.join(', ')} : manquant dans le formulaire.`,
  noColumns: 'La première ligne ne nomme aucune colonne du modèle. Collez le tableau avec la ligne des noms.',
  image: (width, height) => `Une image : PNG ou JPEG, ramenée à ${width} × ${height} pixels`,
  seen: 'L’image telle que le modèle la voit',
  transparent: 'L’image est en partie transparente. Enregistrez-la sans canal alpha.',
  go: 'Prédire',
  result: 'Prédiction',
  percent: formatShare,
  amount: (value, unit) => `${formatPrecise(value)} ${unit}`.trim(),
  changed: 'Le serveur vient de remplacer ce modèle. Ouvrez à nouveau cette page.',
  deep: 'Ce modèle lit des images qu’un navigateur ne lit pas. Utilisez consilium predict.',
  unread: 'La description du modèle du serveur n’est pas lisible ici.',
}
