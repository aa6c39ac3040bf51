"""Where things come from: SBOMs, statements of how a bundle was made, licences and what may be given away."""
